"""Counts what a package costs on AWS, in simulated time: the calls of the real services, adapters and agents."""

import os

# What stands in for AWS in the tests accepts any credentials.
os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
