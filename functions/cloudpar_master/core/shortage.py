"""Decides whether the hosts of the fleet do the work for which they were started, and when the fleet may grow again."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

SHORT_S: Final = 480.0
"""How many seconds a fleet may lack working hosts while no further host starts to work. After this time the shortage is
reported, and the fleet does not grow for a while. A host boots in a fraction of SHORT_S. A host whose worker does not
reach the master ends itself after 600 s (infra/lib/host/watch.sh). SHORT_S must be shorter than that: otherwise the
next host would start before the shortage is noticed."""

PAUSES_S: Final = 60.0, 3_600.0
"""The first and the longest pause, in seconds, in which the fleet does not grow. The pause doubles each time. Without
the pauses, hosts with a broken image would start and end all day, and each of them costs money."""


class Shortage(Struct, frozen=True):
    """For how long the fleet has had too few working hosts. A host works if its worker sends requests to the master.

    Attributes:
        since: The start of the current period of SHORT_S: the time when the shortage started, when the last further
            host started to work, or when the last pause ended. None: there is no shortage.
        working: How many hosts worked at the last look.
        pauses: How many pauses there were since a further host started to work. If there was any, the shortage is
            reported.
        resumes_at: The time before which no process makes the fleet larger.
        template: What new hosts are made from. If this changes, the new hosts get the full SHORT_S, without a pause.
    """

    since: float | None = None
    working: int = 0
    pauses: int = 0
    resumes_at: float = 0.0
    template: str = ""


NO_SHORTAGE: Final = Shortage()


def looked(before: Shortage, now: float, working: int, expected: int, template: str) -> Shortage:
    """Return the shortage after a look at the fleet.

    Args:
        before: The shortage after the last look.
        now: The time.
        working: How many hosts of the fleet work.
        expected: How many hosts should work: as many as the work needs, but at least as many as run.
        template: What new hosts are made from.

    >>> shortage = looked(NO_SHORTAGE, 0.0, 0, 1, "v1")
    >>> shortage = looked(shortage, SHORT_S, 0, 1, "v1")
    >>> shortage.pauses, shortage.resumes_at - SHORT_S
    (1, 60.0)
    >>> looked(shortage, SHORT_S + 60.0, 1, 1, "v1")
    Shortage(since=None, working=0, pauses=0, resumes_at=0.0, template='')
    """
    if working >= expected:
        return NO_SHORTAGE
    if before.since is None or working > before.working or template != before.template:
        return Shortage(since=now, working=working, template=template)
    if now - before.since < SHORT_S:
        return replace(before, working=working)
    shortest_s, longest_s = PAUSES_S
    resumes_at = now + min(shortest_s * (1 << min(before.pauses, 10)), longest_s)
    # The next period of SHORT_S starts at the end of the pause, because the next hosts start only then.
    return replace(before, since=resumes_at, working=working, pauses=before.pauses + 1, resumes_at=resumes_at)
