"""The modules of the user's project: which of them tasks need, and how they reach the executors."""
