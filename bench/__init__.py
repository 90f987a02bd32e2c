"""The project's measurements. They use the clusters of the tests, and the stand-in for AWS of the tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
