"""Turns functions, task data and modules of the user's project into bytes."""
