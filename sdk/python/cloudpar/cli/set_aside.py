"""Lines about workers that cannot run a package."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from cloudpar_protocol.client_messages import PackageSummary
from cloudpar_protocol.fleet_messages import ConnectedWorker

from .presentation import words

ID_CHARS = 8
"""How many characters of an id are shown. Of 10,000 lists of a thousand packages, about one has two ids that start with
the same 8 characters."""

NAMED = 3
"""How many packages a line names. If there are more, the line gives only the number of the others."""

UNKNOWN = "its log says why"
"""This text is shown if the reason of a worker is not known: a package records only the reasons of the first workers.
"""


def of_packages(packages: Iterable[PackageSummary]) -> Iterator[str]:
    """Yield one line for each host and reason, with the packages of this reason."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for package in packages:
        for each in package.set_aside:
            found[each.host, each.lacks].append(package.package_id)
    for (host, lacks), package_ids in found.items():
        yield f"set aside on {words(host) or 'a worker'}: {words(lacks)} ({named(package_ids)})"


def of_workers(workers: Iterable[ConnectedWorker]) -> Iterator[str]:
    """Yield one line for each worker and reason, with the packages of this reason."""
    for worker in workers:
        found: dict[str, list[str]] = defaultdict(list)
        for each in reversed(worker.set_aside):
            found[each.lacks].append(each.package_id)
        for lacks, package_ids in found.items():
            where = f"{words(worker.worker_id[:ID_CHARS])} on {words(worker.host) or 'a worker'}"
            yield f"{where}: {words(lacks) or UNKNOWN} ({named(package_ids)})"


def named(package_ids: Sequence[str]) -> str:
    """Return a text with the first ids of a list, shortened, and the number of all other ids.

    >>> named(["0123456789abcdef"])
    'package 01234567'
    >>> named(["a", "b", "c", "d", "e"])
    'packages a, b, c and 2 more'
    """
    *shown, last = [package_id[:ID_CHARS] for package_id in package_ids[:NAMED]]
    if len(package_ids) > NAMED:
        return f"packages {', '.join([*shown, last])} and {len(package_ids) - NAMED} more"
    return f"packages {', '.join(shown)} and {last}" if shown else f"package {last}"
