"""The Lambda functions. Each parses its event, calls a service, renders the answer, and logs one line and metrics."""
