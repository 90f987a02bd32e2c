"""The processes of a pool's own master and agent on this machine."""
