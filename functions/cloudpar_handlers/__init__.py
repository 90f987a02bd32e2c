"""The Lambda functions. Each function parses its input, calls a service, renders the answer, and logs what happened."""
