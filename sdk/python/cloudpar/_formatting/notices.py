"""Notices about workers: no worker is connected, no worker can run a package, or some workers could not run it."""

from collections.abc import Iterator, Sequence

from cloudpar_protocol.client_messages import Placement
from cloudpar_protocol.one_line import one_line
from cloudpar_protocol.payloads import LACKS_CHARS, Unfit

AFTER_S = 5.0
"""If a package has waited this many seconds without a worker, the pool shows a notice."""


def of_set_aside(package_id: str, unfit: Sequence[Unfit]) -> Iterator[str]:
    """Yield a line for each worker that could not run a package.

    >>> next(of_set_aside("0123456789ab", [Unfit("host-a", "no module named 'numpy'")]))
    "the worker on host-a cannot run package 01234567 (no module named 'numpy') and leaves it to workers that can"
    """
    for each in unfit:
        # The client does not know here whether there are other workers. of_placement tells the user if there are none.
        what = f"package {package_id[:8]} ({_shown(each.lacks)})"
        yield f"the worker on {_shown(each.host) or 'a machine'} cannot run {what} and leaves it to workers that can"


def of_placement(placement: Placement, endpoint: str) -> str | None:
    """Say why no connected worker can run a waiting package; None if a worker can, even if it is busy.

    >>> of_placement(Placement(workers=1, others=[Unfit("a", "only Python 3.11")]), "http://here:1")
    'the only connected worker cannot run these tasks (a: only Python 3.11): waiting for one that can'
    >>> of_placement(Placement(workers=9, others=[Unfit("a", "no module named 'x'")]), "http://here:1")
    "none of the 9 connected workers can run these tasks (a: no module named 'x'; and 8 more): waiting for one that can"
    """
    if placement.fitting:
        return None
    if not placement.workers:
        return (
            f"no worker is connected to {endpoint}, so no task runs yet: start one by `cloudpar worker --endpoint "
            f"{endpoint}`, with the deployment's worker token in CLOUDPAR_WORKER_TOKEN"
        )
    needs = f", which need Python {placement.python}" if placement.python else ""
    there = [f"{_shown(each.host)}: {_shown(each.lacks)}" for each in placement.others]
    if there and placement.workers > len(there):
        there.append(f"and {placement.workers - len(there):,} more")
    which = f" ({'; '.join(there)})" if there else ""
    none = "the only connected worker cannot" if placement.workers == 1 else _none_of(placement.workers)
    return f"{none} run these tasks{needs}{which}: waiting for one that can"


def _shown(text: str) -> str:
    """A text that a worker has sent, in a form that is safe to print."""
    return one_line(text, LACKS_CHARS)


def _none_of(workers: int) -> str:
    return "neither connected worker can" if workers == 2 else f"none of the {workers:,} connected workers can"
