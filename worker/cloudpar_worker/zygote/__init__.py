"""The process from which executors are forked. It also measures their memory and sets the priority of threads."""
