"""Checks the arguments that users pass to the public calls."""
