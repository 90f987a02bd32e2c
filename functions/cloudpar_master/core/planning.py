"""Computes the size and the number of chunks, by guided self-scheduling with measured durations.

Source: Polychronopoulos and Kuck, "Guided self-scheduling", 1987. Each chunk takes a share of the uncut tasks, so
chunks become smaller towards the end of a package. In addition, a chunk should last at most a target time, so that
workers report regularly, and at least a shortest time, because each chunk costs requests.
"""

from cloudpar_protocol import ranges

from .head import Head, Pace
from .policy import Policy

UNMEASURED_CHUNK = 16
"""How many tasks a chunk has at most while their duration is unknown: few, because each may last an hour."""

SMALLEST_CHUNK = 20
"""Even the last chunks should last at least the target time divided by this number. Shorter chunks would cost too many
requests for their work."""

YOUNG_GROWTH, YOUNG_PARTS = 4, 2
"""Where the executors of a worker share chunks, a chunk of a young package should last at most YOUNG_GROWTH times as
long as each of the package's executors has worked at the package so far, on average. A chunk may always last the target
time divided by YOUNG_PARTS."""

FULL_FLEET = 50
"""With this many executors, chunks may last twice the target time, if `longest_chunk_us` permits it. Where the
executors of a worker share chunks (`shares_chunks`), chunks last one target time longer for each worker instead."""

LARGE_FLEET = 250
"""If a package has more executors than this, it may have more open chunks than `largest_window`, in proportion to its
executors."""

SHORT_WAIT_US = 500_000
"""How many microseconds a chunk should wait in the queue at most. A wait of this length keeps workers supplied; a
longer wait only delays other accounts."""

SMALL_PACKAGE = 32
"""A package of at most this many tasks may have all of them in chunks at once. Chunks that were cut later would wait
behind the chunks of all large packages."""

NESTED_PACKAGES = 8
"""Even if an account has enough open packages, a package that a task has started still opens while fewer than this many
open packages have its nesting depth or a greater one. Tasks wait for such packages, so some of each depth must be open.
The number is bounded because clients choose the depth: otherwise they could open as many packages as they like."""

EXPRESS_TASKS = 4
"""Where the queue cannot choose among messages (on AWS), a chunk goes by the express queue if it starts with one of the
first EXPRESS_TASKS tasks of its package and no worker was lost with it. The number is small, because the first chunks
of the next package wait behind these chunks."""


def first_window(tasks: int, policy: Policy) -> int:
    """Return the number of chunks that a package has open at its start.

    Where the executors of a worker share chunks, the chunks that other packages have in the queue last long. There a
    package that may be short starts with only its express chunks (EXPRESS_TASKS), which overtake those chunks. Idle
    executors widen the package's window at once. If all executors are busy, the window grows when durations are known.
    From then on, the package's other tasks may go by the express queue, too (express_until).

    >>> first_window(10, Policy()), first_window(10, Policy(shares_chunks=True))
    (10, 4)
    """
    overtaking = policy.shares_chunks and tasks <= UNMEASURED_CHUNK * policy.first_window
    return min(tasks, EXPRESS_TASKS) if overtaking else unmeasured_window(tasks, policy)


def unmeasured_window(tasks: int, policy: Policy) -> int:
    """Return the number of chunks that a package may have open for idle executors before durations are measured.

    >>> unmeasured_window(10, Policy()), unmeasured_window(1_000_000, Policy())
    (10, 8)
    """
    return max(policy.first_window, tasks) if tasks <= SMALL_PACKAGE else policy.first_window


def chunk_target_us(places: int, policy: Policy) -> int:
    """Return how long a chunk should last, in microseconds, if this many chunks can run at the same time (`places`).

    The more places there are, the sooner one of them is free for another account, so the longer chunks may last.

    >>> cloud = Policy(chunk_target_us=10_000_000, longest_chunk_us=30_000_000)
    >>> [chunk_target_us(executors, cloud) // 1_000_000 for executors in (1, 50, 1_000)]
    [10, 20, 30]
    >>> cloud = Policy(chunk_target_us=10_000_000, longest_chunk_us=120_000_000, shares_chunks=True)
    >>> [chunk_target_us(workers, cloud) // 1_000_000 for workers in (1, 4, 25)]
    [20, 50, 120]
    """
    full = 1 if policy.shares_chunks else FULL_FLEET
    wished_us = policy.chunk_target_us * (full + places) // full
    return max(policy.chunk_target_us, min(wished_us, policy.longest_chunk_us))


def crew_of(pace: Pace, policy: Policy) -> int:
    """Return how many executors one chunk is for.

    The result is 1, unless the executors of a worker share chunks and the duration of tasks is known. Then it is the
    number of executors of the smallest worker, so that no worker gets a chunk that keeps it busy for longer than the
    others. If tasks are so long that a chunk has fewer tasks than this worker has executors, the result is the number
    of the chunk's tasks.

    >>> from cloudpar_master.core.head import Member
    >>> fleet = {7: Member(executors=4, seen_at=0.0), 8: Member(executors=16, seen_at=0.0)}
    >>> cloud = Policy(chunk_target_us=10_000_000, longest_chunk_us=120_000_000, shares_chunks=True)
    >>> [crew_of(Pace(mean_us=mean_us, measured=1, fleet=fleet, window=9), cloud) for mean_us in (1e6, 1e8, 3.6e9)]
    [4, 2, 1]
    """
    if not (policy.shares_chunks and pace.measured and pace.fleet):
        return 1
    smallest = max(1, min(member.executors for member in pace.fleet.values()))
    longest_us = smallest * chunk_target_us(pace.executors // smallest, policy)
    return max(1, min(smallest, int(longest_us / max(pace.mean_us, 1.0))))


def places_of(pace: Pace, policy: Policy) -> int:
    """Return how many chunks keep all executors of a package busy.

    >>> from cloudpar_master.core.head import Member
    >>> places_of(Pace(fleet={7: Member(executors=4, seen_at=0.0)}, window=8), Policy())
    4
    """
    return -(-pace.executors // crew_of(pace, policy))


def chunk_size(uncut: int, tasks: int, pace: Pace, policy: Policy) -> int:
    """Return how many of the `uncut` tasks the next chunk takes.

    Chunks in the queue delay other accounts. Therefore a target time over SHORT_WAIT_US is reduced if the window is
    large: over 1.5 * (p + 2), where p is the number of chunks that keep the executors busy (places_of). A window of
    3 * (p + 2) halves the target time.

    Args:
        uncut: The number of tasks that are in no chunk yet; at least 1.
        tasks: The number of the package's tasks.
        pace: Measured durations, executors and window of the package, which is not closed.
        policy: The settings of the deployment.

    Returns:
        A number from 1 to `uncut`.

    >>> from cloudpar_master.core.head import Member
    >>> from msgspec.structs import replace
    >>> pace = Pace(mean_us=10_000.0, measured=50, fleet={7: Member(executors=2, seen_at=0.0)}, window=4)
    >>> chunk_size(100_000, 100_000, pace, Policy(chunk_target_us=200_000))
    20
    >>> chunk_size(12, 100_000, pace, Policy(chunk_target_us=200_000))
    3
    >>> chunk_size(100_000, 100_000, replace(pace, window=32), Policy(chunk_target_us=2_000_000))
    38
    """
    mean_us, crew, places = max(pace.mean_us, 1.0), crew_of(pace, policy), places_of(pace, policy)
    if not pace.measured:
        wished = min(UNMEASURED_CHUNK, tasks // (16 * policy.first_window), uncut // (2 * max(pace.most_executors, 1)))
    else:
        # Workers that have not published yet count, too, in `most_executors`: the requests of idle workers showed them.
        # Otherwise the first workers of a small package would get all of its tasks, and the other workers none.
        known = pace.most_executors // crew if policy.shares_chunks else 1
        share = -(-uncut // (2 * max(places, known, 1)))
        worthwhile = round(crew * policy.chunk_target_us / SMALLEST_CHUNK / mean_us)
        target_us = float(chunk_target_us(places, policy))
        if policy.shares_chunks:
            # While a package is young, few of its workers have published. A chunk that is sized for these few could
            # take longer than all workers together need for the rest.
            young_us = YOUNG_GROWTH * pace.execute_us / max(pace.executors, 1)
            target_us = min(target_us, max(policy.chunk_target_us / YOUNG_PARTS, young_us))
        if target_us > SHORT_WAIT_US:
            target_us *= min(1.0, 1.5 * (places + 2) / pace.window)
        wished = min(round(crew * target_us / mean_us), max(share, worthwhile))
    return max(1, min(wished, uncut))


def express_until(head: Head, policy: Policy) -> int:
    """Return a task's number: chunks that start before this task are express chunks, which overtake others.

    The first tasks of a package overtake the chunks of long packages. The last tasks do so, too, as soon as all
    unfinished tasks together fit into one chunk. They then delay the first chunks of other packages no longer than any
    other chunk does. In the main queue they could wait for minutes.
    """
    pace = head.pace
    if not pace.measured:
        return EXPRESS_TASKS
    most = crew_of(pace, policy) * policy.chunk_target_us / max(pace.mean_us, 1.0)
    # The first comparison recognizes long packages, and saves adding up their ranges.
    is_short = head.uncut <= most and ranges.size(head.unfinished) <= most
    return head.tasks.count if is_short else EXPRESS_TASKS


def largest_window(executors: int, policy: Policy) -> int:
    """Return the largest window that a package may have. With over LARGE_FLEET executors, it grows with their number.

    >>> largest_window(2, Policy()), largest_window(1_000, Policy())
    (400, 1600)
    """
    return policy.largest_window * max(executors, LARGE_FLEET) // LARGE_FLEET


def next_window(window: int, wait_us: int, places: int, policy: Policy, most_executors: int = 0) -> int:
    """Return the new window, given the time for which a recent chunk waited in the queue.

    If the wait was short, the window doubles until its chunks keep all known executors busy (`places`, see places_of).
    Then it grows slowly, because chunks in the queue delay other accounts. If the wait was long, the window is halved,
    but stays large enough to keep the executors busy. With any other wait the window stays as it is. A wait is short if
    it is less than a quarter of `chunk_target_us` and less than SHORT_WAIT_US. A wait is long if it is over twice
    `chunk_target_us` or over four times SHORT_WAIT_US. The result is at most `largest_window` for as many executors as
    there are places, or for `most_executors` if this is more.

    >>> next_window(4, 1_000, 2, Policy()), next_window(8, 1_000, 2, Policy()), next_window(8, 100_000, 2, Policy())
    (6, 10, 8)
    >>> next_window(64, 900_000, 2, Policy()), next_window(8, 900_000, 2, Policy())
    (32, 4)
    >>> next_window(200, 1_000, 160, Policy())
    220
    """
    enough = _enough(places, policy)
    if wait_us < min(policy.chunk_target_us // 4, SHORT_WAIT_US):
        window = window * 2 if window < enough else window + max(1, min(places, 8), places // 8)
    elif wait_us > min(2 * policy.chunk_target_us, 4 * SHORT_WAIT_US):
        window = max(window // 2, enough)
    return min(window, largest_window(max(places, most_executors), policy))


def _enough(places: int, policy: Policy) -> int:
    # A chunk for all executors of a worker lasts so long that one waiting chunk suffices.
    return places + (1 if policy.shares_chunks else 2)
