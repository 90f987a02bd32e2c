"""A journal of the workers' requests to a master and of its replies, in the order of the replies."""

from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any, Final

import msgspec
from msgspec import Struct

from cloudpar_protocol import routes
from cloudpar_protocol.payloads import Range

JOURNAL: Final = "CLOUDPAR_TEST_JOURNAL"
"""The environment variable that names a recording master's file."""

WORKER_ROUTES: Final = {
    routes.RETRIEVE_TASKS.name,
    routes.PUBLISH_RESULTS.name,
    routes.EXTEND_LEASES.name,
    routes.GIVE_BACK.name,
}


class Portion(Struct):
    """Tasks of one lease that were handed out, published or given back; none if the lease was extended.

    `closes`: the lease ends with this portion.
    """

    package_id: str
    lease_id: str
    ranges: list[Range]
    closes: bool = False


class Entry(Struct):
    """One request. Its times are on the machine's monotonic clock, which all processes share.

    A held retrieval is tried repeatedly, and has an entry for each try.
    """

    asked_s: float
    answered_s: float
    route: str
    worker_id: str
    attempt_id: str
    portions: list[Portion]


def recorded(steps: Callable[[Any, Any], Any], path: Path) -> Callable[[Any, Any], Any]:
    """Wrap Dispatcher.steps so that it also records what it did for workers."""
    file = path.open("ab", buffering=0)

    def recording(dispatcher: Any, call: Any) -> Any:
        asked_s = monotonic()
        reply = yield from steps(dispatcher, call)
        name, request = call.route.name, call.request
        if name in WORKER_ROUTES:
            attempt_id = getattr(request, "attempt_id", "")
            portions = _portions(name, request, reply)
            entry = Entry(asked_s, monotonic(), name, request.worker_id, attempt_id, portions)
            file.write(msgspec.json.encode(entry) + b"\n")
        return reply

    return recording


def _portions(name: str, request: Any, reply: Any) -> list[Portion]:
    if name == routes.RETRIEVE_TASKS.name:
        return [Portion(lease.package_id, lease.lease_id, lease.ranges) for lease in reply.leases]
    if name == routes.EXTEND_LEASES.name:
        return [Portion(lease.package_id, lease.lease_id, []) for lease in request.leases]
    if name == routes.GIVE_BACK.name:
        return [Portion(item.package_id, item.lease_id, item.ranges, item.closes) for item in request.returns]
    if name == routes.PUBLISH_RESULTS.name:
        return [
            Portion(
                made.package_id, made.lease_id, [(result.index, result.index + 1) for result in made.results],
                made.closes,
            )
            for made in request.publications
        ]  # fmt: skip
    return []


def read(path: Path) -> Iterator[Entry]:
    """Yield all entries so far."""
    for line in path.read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):  # the last entry may still be incomplete
            yield msgspec.json.decode(line, type=Entry)
