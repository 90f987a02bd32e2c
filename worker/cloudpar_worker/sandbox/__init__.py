"""Confines executors of a shared worker by user ids, Landlock and seccomp, and cleans up after executors."""
