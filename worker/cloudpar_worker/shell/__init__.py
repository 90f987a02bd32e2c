"""The agent's process around its state machine: it talks to the master, to zygotes and to executors."""
