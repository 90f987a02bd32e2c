"""Guarantee 18: task code that looks for secrets, or attacks other processes, finds nothing."""

import html
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from docs.pages import without_links
from worker.isolation.probes import PROBES, Probe
from worker.isolation.shared import MODES, Shared, found

PAGE = Path(__file__).parents[3] / "docs/isolation.md"
OPEN_OTHERWISE = [probe for probe in PROBES if probe.open_otherwise]


@pytest.fixture(scope="module")
def shared(start: Callable[..., Shared], mode: str) -> Shared:
    shared = start(mode)
    shared.invade()
    return shared


@pytest.fixture(scope="module")
def unconfined(start: Callable[..., Shared]) -> Shared:
    """A worker with isolation "own"."""
    shared = start("one-user", isolation="own")
    shared.invade()
    return shared


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: str(probe.tried))
def test_g18_a_probe_finds_nothing_on_a_shared_worker(
    shared: Shared, probe: Probe, reached: Callable[[str], None]
) -> None:
    result = shared.run(probe.code)
    assert not found(result), f"{probe.tried}: {result}"
    # The targets of the probe are there.
    assert shared.agent.process.poll() is None
    assert psutil.pid_exists(shared.clues["zygote"])
    assert psutil.Process(shared.clues["other"]).status() != psutil.STATUS_ZOMBIE
    reached(f"{len(PROBES)} probes from task code, {' and '.join(MODES)}: 0 found")


@pytest.mark.parametrize("probe", OPEN_OTHERWISE, ids=lambda probe: str(probe.tried))
def test_g18_a_probe_finds_what_is_open_on_an_unconfined_worker(unconfined: Shared, probe: Probe) -> None:
    assert found(unconfined.run(probe.code)), probe.tried


def test_g18_the_documentation_lists_exactly_the_probes() -> None:
    """The page lists every probe, and nothing else."""
    table = without_links(PAGE.read_text()).partition("| tried | own users | one user |")[2].partition("\n\n")[0]
    listed = [html.unescape(row.split(" | ")[0].removeprefix("| ")) for row in table.splitlines()[2:]]
    assert listed == [probe.tried for probe in PROBES]
