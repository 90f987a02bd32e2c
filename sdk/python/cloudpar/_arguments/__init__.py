"""Checks of what users pass to the public calls."""
