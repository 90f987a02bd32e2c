"""A pool's own master and worker on this machine: their processes and their temporary folder."""
