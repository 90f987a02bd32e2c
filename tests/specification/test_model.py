"""The model checker finds mistakes in the specification. `make specification` checks it without any."""

from pathlib import Path

import pytest

from .__main__ import check
from .test_g31_replay import changed_copy
from .tlc import CHECKED, FOLDER, FOUND, output


@pytest.mark.parametrize(
    ("line", "changed", "violated"),
    [
        (
            "LET back == TakeBack(h, S, gen, 0, 1) IN",
            "LET back == h IN",
            "NoTaskIsLost",
        ),
        ("!.result[t] = result, !.used = @ + cost]", "!.result[t] = result]", "ChargedExactlyOnce"),
        ("IF charge[p] # Unpaid THEN charge[p] ELSE", "", "ChargedExactlyOnce"),
        ("ELSE Min(h.wanted, Free)", "ELSE h.wanted", "TheQuotaIsAWall"),
        ("End(h, state) == IF ~Running(h) THEN h ELSE", "End(h, state) ==", "Action property"),
    ],
)
def test_a_mistake_in_the_specification_violates_a_property(
    line: str, changed: str, violated: str, tmp_path: Path
) -> None:
    text = output("Packages", "Faulty", folder=changed_copy(tmp_path, line, changed))
    assert FOUND not in text
    assert violated in text


def test_every_configuration_is_checked_or_replayed() -> None:
    assert {path.stem for path in FOLDER.glob("*.cfg")} == {*CHECKED, "Replay"}


def test_a_check_that_takes_too_long_is_stopped_and_counts_as_failed(capsys: pytest.CaptureFixture[str]) -> None:
    assert not check("Two", limit_s=0.0)
    assert "Two.cfg: stopped after 0 s" in capsys.readouterr().out
