"""Finds the modules of the user's project that tasks need, and sends them to executors."""
