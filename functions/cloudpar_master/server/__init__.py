"""The embedded master: an ASGI application in one process. One thread answers all requests, also held ones."""
