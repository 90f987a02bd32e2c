"""The pool beside other libraries that run Python functions on many processes: `make bench-peers`."""
