"""One client of one master: requests, packages under way, and their results."""
