"""What limits executors have, and what the agent keeps for itself."""

import os
import resource
from collections.abc import Callable

import pytest

from cloudpar_worker.sandbox import limits

GB = 1 << 30


def in_a_fork(function: Callable[[], bool]) -> bool:
    """Whether a function returns True in a process of its own, whose limits it may lower."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            code = 0 if function() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_an_executor_cannot_raise_its_limits() -> None:
    def limited() -> bool:
        limits.limit_executor(processes=7, file_bytes=GB)
        found = [
            resource.getrlimit(kind)
            for kind in (
                resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_MSGQUEUE,
                resource.RLIMIT_RTPRIO, resource.RLIMIT_NICE,
            )
        ]  # fmt: skip
        return found == [(each, each) for each in (7, GB, 0, 0, 0, 0)] and all(
            resource.getrlimit(kind) <= (most, most)
            for kind, most in ((resource.RLIMIT_NOFILE, limits.FILES), (resource.RLIMIT_SIGPENDING, 4_096))
        )

    assert in_a_fork(limited)


@pytest.mark.parametrize(
    ("own", "wanted", "given"),
    [(resource.RLIM_INFINITY, 9_000, 9_000), (1_000, 500, 500), (1_000, 5_000, 936), (10, 5_000, 1)],
)
def test_executors_of_one_user_leave_the_agent_some_processes(
    monkeypatch: pytest.MonkeyPatch, own: int, wanted: int, given: int
) -> None:
    """Otherwise the agent, which has the same user, would get no thread for a request, and end."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (own, own))
    assert limits.shared_processes(wanted) == given


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((1_024, 500_000), (2 * limits.FILES, 500_000)),
        ((1_024, 4_096), (4_096, 4_096)),
        ((1_024, resource.RLIM_INFINITY), (2 * limits.FILES, resource.RLIM_INFINITY)),
        ((100_000, 500_000), (100_000, 500_000)),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), (resource.RLIM_INFINITY, resource.RLIM_INFINITY)),
    ],
)
def test_an_agent_may_have_more_descriptors_than_an_executor(
    monkeypatch: pytest.MonkeyPatch, before: tuple[int, int], after: tuple[int, int]
) -> None:
    there = before

    def change(_: int, to: tuple[int, int]) -> None:
        nonlocal there
        there = to

    monkeypatch.setattr(resource, "getrlimit", lambda _: there)
    monkeypatch.setattr(resource, "setrlimit", change)
    limits.keep_descriptors()
    assert there == after
