"""The process that executors are forked from, and how it measures their memory."""
