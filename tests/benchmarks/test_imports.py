"""The measurements with their own environments, which lack the tools of the tests."""

import subprocess
import sys

import pytest

from docs.pages import ROOT

TOOLS = ("pytest", "hypothesis", "moto", "boto3")
PROGRAM = "import sys, importlib\nsys.modules |= dict.fromkeys({tools})\nimportlib.import_module({module!r})"


@pytest.mark.parametrize(
    "module", ["bench.cluster", "bench.coming_from", "bench.peers.__main__", "bench.peers.taps_runs"]
)
def test_a_measurement_needs_no_tool_of_the_tests(module: str) -> None:
    """`make programs` and `make bench-peers` failed at once after a helper of theirs had imported pytest."""
    program = PROGRAM.format(tools=TOOLS, module=module)
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
