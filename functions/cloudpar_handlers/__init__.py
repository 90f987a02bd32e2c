"""The Lambda functions. Each parses a request, calls a service, renders the reply and logs one line; nothing else."""
