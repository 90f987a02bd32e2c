"""The process that runs task code. This package sends no requests to the master, and never has the worker token."""
