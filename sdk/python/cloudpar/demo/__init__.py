"""A benchmark: many factorizations, run sequentially, on a process pool, and on a cloudpar pool."""
