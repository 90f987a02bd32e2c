"""What confines executors of a shared worker: user ids, Landlock, seccomp, and the cleanup after them."""
