"""The agent's process around its state machine: connections to the master, and to zygotes and executors."""
