"""The zygote weighs an executor in one child at a time, and a child cannot hang."""

import os
import signal

import pytest

from cloudpar_worker.sandbox import kernel
from cloudpar_worker.sandbox.sandboxes import Sandbox
from cloudpar_worker.zygote import cpu_share
from cloudpar_worker.zygote.cpu_share import LAST, CpuShare, niceness
from cloudpar_worker.zygote.messages import LIGHTEN, RESTORE

SANDBOX = Sandbox("/nowhere", None)


def hang(_executor: int, _user: int | None) -> None:
    signal.pause()


def test_a_child_that_takes_too_long_is_killed_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task with the same user id may have stopped it."""
    monkeypatch.setattr(cpu_share, "weigh", hang)
    monkeypatch.setattr(cpu_share, "_PATIENCE_S", 0.0)
    share = CpuShare()
    for _ in range(2):
        share.start(os.getpid(), SANDBOX)
        share.start(os.getpid(), SANDBOX)
        ((child, _),) = share._under_way.values()
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        share.ended(child)


def test_a_second_child_starts_only_after_the_first_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_share, "weigh", lambda *_: None)
    share = CpuShare()
    share.start(os.getpid(), SANDBOX)
    first = dict(share._under_way)
    share.start(os.getpid(), SANDBOX)
    assert share._under_way == first
    ((child, _),) = first.values()
    os.waitpid(child, 0)
    share.ended(child)
    assert not share._under_way


@pytest.mark.parametrize(("threads", "least"), [(0, 0), (1, 0), (2, 4), (40, 17), (69, 19), (500, 19)])
def test_many_threads_weigh_no_more_than_one(threads: int, least: int) -> None:
    assert niceness(threads) == least


ROOT = 1 << 21 | 1 << 23
EXECUTOR, USER, USUAL = 77, 60_000, 5
LOWEST = [("session", EXECUTOR, LAST), (os.PRIO_USER, USER, LAST)]
RESTORED = [("session", EXECUTOR, 0), (os.PRIO_USER, USER, USUAL)]


@pytest.mark.parametrize(
    ("request_", "capabilities", "niceness_now", "expected"),
    [
        (LIGHTEN, ROOT, USUAL, LOWEST),
        (LIGHTEN, ROOT, LAST, LOWEST),
        (RESTORE, ROOT, LAST, RESTORED),
        (RESTORE, ROOT, USUAL, []),
        (LIGHTEN, 1 << 21, USUAL, []),
        (LIGHTEN, 1 << 23, USUAL, []),
    ],
)
def test_an_executor_gets_the_lowest_weight_only_if_it_can_get_its_usual_weight_again(
    monkeypatch: pytest.MonkeyPatch,
    request_: bytes,
    capabilities: int,
    niceness_now: int,
    expected: list[tuple[object, ...]],
) -> None:
    calls: list[tuple[object, ...]] = []
    monkeypatch.setattr(kernel, "capabilities", lambda: capabilities)
    monkeypatch.setattr(os, "getpriority", lambda _kind, process: niceness_now if process == EXECUTOR else USUAL)
    monkeypatch.setattr(os, "setpriority", lambda *call: calls.append(call))
    monkeypatch.setattr(
        cpu_share, "_weigh_session", lambda process, _user, wanted, **_: calls.append(("session", process, wanted))
    )
    cpu_share.set_weight(EXECUTOR, USER, request_)
    assert calls == expected
