"""The main job, measured: many factorizations, one after the other, on a process pool, and on the cloudpar pool."""
