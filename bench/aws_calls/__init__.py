"""What a package costs on AWS: the calls of the real services, adapters and agents, counted in simulated time."""
