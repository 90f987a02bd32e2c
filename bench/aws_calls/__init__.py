"""Counts what a package costs on AWS: the requests that the real services and adapters send, in simulated time."""

import os

# The stand-in for AWS that the tests use accepts any credentials.
os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
