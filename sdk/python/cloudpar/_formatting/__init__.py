"""Texts for users: counts, notices about workers, short tracebacks."""
