"""How the SDK and workers reach a master and its blob stores: HTTP, repeated attempts, uploads in parts, and files.

The rest of the protocol defines the messages, and imports nothing of this package. The master only answers requests, so
it does not import this package either.

Read `channel` first: it makes one attempt of each request. `retries` repeats attempts for as long as the caller wants.
"""
