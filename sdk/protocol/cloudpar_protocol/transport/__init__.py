"""How the SDK and workers reach a master and its blob stores: HTTP, repeated attempts, uploads in parts, and files.

The other modules of the protocol define the messages, and import nothing of this package. The master does not import
this package either, because it only answers requests.

Read `channel` first: it makes one attempt of each request. `retries` repeats attempts for as long as the caller wants.
"""
