"""What a pool shows while it works: progress, and what tasks print."""
