"""One client of one master: its requests, its packages under way, and their results."""
