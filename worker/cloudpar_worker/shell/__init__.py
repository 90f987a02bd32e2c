"""The I/O around the agent's state machine: requests to the master, and messages to and from zygotes and executors."""
