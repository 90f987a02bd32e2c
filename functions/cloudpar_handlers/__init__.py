"""The Lambda functions: parse, call a service, render, say so in the log. Nothing else."""
