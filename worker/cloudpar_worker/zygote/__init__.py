"""The process from which executors are forked. It also measures the memory of executors and weighs their threads."""
