"""What a package costs on AWS: the calls of the real services, adapters and agents, counted in simulated time."""

import os
import sys
from pathlib import Path

# What stands in for AWS here also does so in the tests. It accepts any credentials.
sys.path.append(str(Path(__file__).parents[2] / "tests"))
os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
