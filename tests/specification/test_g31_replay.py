"""The master does what the specification says, and a change of either that makes them differ is noticed."""

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cloudpar_master.core.events import QuotaGranted
from cloudpar_master.core.fold import cancellation, open_ranges, quota, tasks
from cloudpar_master.core.fold.draft import Draft
from support.scale import Scale

from .machine import Machine
from .replay import replay
from .tlc import FOLDER, behaviours
from .view import Drift

DEPTH = 45

NOTED = re.compile(r'Note\(<<"(\w+)"')


@pytest.fixture(scope="module")
def some() -> Sequence[str]:
    """Behaviours, as many as the tests of planted changes need."""
    return behaviours(60, DEPTH)


def test_g31_the_master_does_what_the_specification_says(
    some: Sequence[str], scale: Scale, tmp_path: Path, reached: Callable[..., None]
) -> None:
    replayed = behaviours(3_000, DEPTH) if scale.full else some
    taken = replay(replayed, tmp_path)
    assert set(taken) == set(NOTED.findall((FOLDER / "Packages.tla").read_text())), taken
    reached(
        "{behaviours:,} behaviours of the specification, {steps:,} steps", behaviours=len(replayed), steps=taken.total()
    )


def a_result_leaves_its_task_open(patch: pytest.MonkeyPatch) -> None:
    real = open_ranges.take

    def take(head: Any, *arguments: Any, **named: Any) -> Any:
        before = list(head.tasks.open)
        taken = real(head, *arguments, **named)
        head.tasks.open = before
        return taken

    patch.setattr(open_ranges, "take", take)


def a_closed_lease_gives_nothing_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tasks, "take_back", lambda *_, **_more: False)


def stopped_tasks_are_charged_again_and_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cancellation, "stopped", lambda *_: None)


def every_answer_adds_a_slice(patch: pytest.MonkeyPatch) -> None:
    def receive(draft: Draft, event: QuotaGranted) -> None:
        draft.head.quota.reserved_us += event.granted_us

    patch.setattr(quota, "receive", receive)


def a_lost_task_runs_again_each_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        tasks, "lose", lambda draft, event: tasks.take_back(draft, [(event.start, event.end)], event.generation)
    )


@pytest.mark.parametrize(
    "plant",
    [
        a_result_leaves_its_task_open,
        a_closed_lease_gives_nothing_back,
        stopped_tasks_are_charged_again_and_again,
        every_answer_adds_a_slice,
        a_lost_task_runs_again_each_time,
    ],
)
def test_g31_a_changed_fold_is_noticed(
    plant: Callable[[pytest.MonkeyPatch], None], some: Sequence[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch)
    with pytest.raises(Drift, match="the master has"):
        replay(some, tmp_path)


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("!.used = @ + Cost(t), !.stopping = @ \\ {t}", "!.used = @ + 1, !.stopping = @ \\ {t}"),
        ("IF alone(c) THEN 0 ELSE Max(losses, r.losses) + more", "Max(losses, r.losses)"),
        ("Min(h.used, Held(p) + Free)", "Min(h.used, Held(p))"),
    ],
)
def test_g31_a_changed_specification_is_noticed(line: str, changed: str, tmp_path: Path) -> None:
    with pytest.raises(Drift, match="the master has"):
        replay(behaviours(60, DEPTH, changed_copy(tmp_path, line, changed)), tmp_path)


def changed_copy(folder: Path, line: str, changed: str) -> Path:
    """Copy the specification with a change."""
    copied = folder / "specification"
    shutil.copytree(FOLDER, copied)
    page = copied / "Packages.tla"
    text = page.read_text()
    assert text.count(line) == 1, line
    page.write_text(text.replace(line, changed))
    return copied


def test_g31_every_step_of_the_specification_can_be_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(
        {"Packages": ["p"], "Count": 1, "ChunkSize": 1, "Quota": 1, "Deliveries": 2}, tmp_path, monkeypatch
    )
    assert set(machine.steps) == set(NOTED.findall((FOLDER / "Packages.tla").read_text()))
