"""The process that runs task code. Its own code sends no requests to the master, and never has the worker token."""
