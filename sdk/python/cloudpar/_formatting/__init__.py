"""Texts for people: counts, notices about workers, short tracebacks."""
