"""The ports, implemented."""
