"""Shows progress while tasks run, and the text that tasks print."""
