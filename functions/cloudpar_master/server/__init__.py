"""The embedded master: one process, one thread, ASGI. A request that has to wait costs no thread here."""
