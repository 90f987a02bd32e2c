"""The notices about workers, for none, one and many of them."""

import pytest

from cloudpar._formatting.notices import of_placement, of_set_aside
from cloudpar_protocol.client_messages import Placement
from cloudpar_protocol.payloads import Unfit

LACKS = Unfit("a", "no module named 'x'")


@pytest.mark.parametrize(
    ("workers", "others", "text"),
    [
        (1, [], "the only connected worker cannot run these tasks: waiting"),
        (2, [LACKS, Unfit("b", "y")], "neither connected worker can run these tasks (a: no module named 'x'; b: y): "),
        (7, [LACKS], "none of the 7 connected workers can run these tasks (a: no module named 'x'; and 6 more): "),
    ],
)
def test_the_number_of_workers_that_cannot_run_a_package_is_named(workers: int, others: list[Unfit], text: str) -> None:
    line = of_placement(Placement(workers=workers, others=others), "http://m")
    assert line is not None
    assert line.startswith(text)


def test_without_workers_the_command_that_starts_one_is_named() -> None:
    line = of_placement(Placement(), "http://m")
    assert line is not None
    assert line.startswith("no worker is connected to http://m")


def test_there_is_no_notice_while_a_worker_can_run_a_package() -> None:
    assert of_placement(Placement(workers=2, fitting=1, others=[LACKS]), "http://m") is None


def test_what_a_worker_says_changes_no_terminal() -> None:
    hostile = Unfit("host\x1b[2J", "no\nmodule\x07")
    assert list(of_set_aside("0123456789ab", [hostile])) == [
        "the worker on host?[2J cannot run package 01234567 (no module?) and leaves it to workers that can"
    ]
    assert "(host?[2J: no module?)" in (of_placement(Placement(workers=1, others=[hostile]), "http://m") or "")
