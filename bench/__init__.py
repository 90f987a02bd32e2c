"""What the project measures. The clusters and the stand-in for AWS are those of the tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
