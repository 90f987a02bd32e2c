"""What a pool shows while tasks run: progress, and the text that tasks print."""
