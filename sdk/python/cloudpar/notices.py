"""What a user is told of workers: that there is none, that none can run a package, and which ones could not."""

from collections.abc import Iterator, Sequence

from cloudpar_protocol.client_messages import Placement
from cloudpar_protocol.payloads import Unfit

AFTER_S = 5.0
"""A package that no worker has run for so long is worth a line."""


def of_set_aside(package_id: str, unfit: Sequence[Unfit]) -> Iterator[str]:
    """A line for each worker that could not run a package.

    >>> next(of_set_aside("0123456789ab", [Unfit("host-a", "no module named 'numpy'")]))
    "the worker on host-a cannot run package 01234567 (no module named 'numpy'): its tasks go to other workers"
    """
    for each in unfit:
        why = f"package {package_id[:8]} ({each.lacks})"
        yield f"the worker on {each.host} cannot run {why}: its tasks go to other workers"


def of_placement(placement: Placement, endpoint: str) -> str | None:
    """Why a package that waits for workers has none; None: one can run it, and is busy.

    >>> of_placement(Placement(workers=1, python="3.12", others=[Unfit("a", "only Python 3.11")]), "http://here:1")
    'no connected worker can run these tasks, which need Python 3.12 (a: only Python 3.11): waiting for one that can'
    """
    if placement.fitting:
        return None
    if not placement.workers:
        return (
            f"no worker is connected to {endpoint}, so no task runs yet: start one by `cloudpar worker --endpoint "
            f"{endpoint}`, with the deployment's worker token in CLOUDPAR_WORKER_TOKEN"
        )
    needs = f", which need Python {placement.python}" if placement.python else ""
    there = "; ".join(f"{each.host}: {each.lacks}" for each in placement.others)
    return f"no connected worker can run these tasks{needs} ({there}): waiting for one that can"
