"""The modules of the user's project: which of them tasks need, and how executors get them."""
