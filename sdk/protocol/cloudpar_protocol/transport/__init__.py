"""How the SDK and workers reach a master and its blob stores: HTTP, repeated attempts, uploads in parts, and files.

The rest of the protocol says what travels, and imports nothing of this package. The master answers requests and makes
none, so it does not import it either.

Read `channel` first: it makes one attempt of each request. `retries` repeats attempts, as long as the caller says.
"""
