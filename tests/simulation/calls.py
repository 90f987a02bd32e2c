"""Small calls beside long jobs, for the tests of both kinds of queue."""

from collections.abc import Callable

from cloudpar_master.ports import AccountRecord
from simulation.site import Site

SECOND = 1_000_000
"""A second in microseconds."""

OpenSite = Callable[..., Site]
"""Opens a site. Each argument is the number of executors of one worker."""


def start_call(site: Site, ann: AccountRecord, *, by_another: bool) -> str:
    """Start a package of one short task, of this account or of another one."""
    return site.start(site.account("bob") if by_another else ann, 1, 10_000)


def run_calls_beside_a_long_job(
    site: Site, executors: int, caller_of: Callable[[int, AccountRecord], AccountRecord]
) -> tuple[int, int]:
    """Run a hundred calls beside a long job. They come as fast as all executors together could run them.

    Args:
        site: Where the job and the calls run.
        executors: How many executors the site has.
        caller_of: The account of each call, by its number and the account of the long job.

    Returns:
        How many tasks of the long job have started by then, and how many calls.
    """
    ann = site.account("ann")
    long = site.start(ann, 1_000, SECOND // 2)
    for number in range(100):
        site.run_until(SECOND + number * SECOND // 2 // executors)
        site.start(caller_of(number, ann), 1, SECOND // 2)
    started = sum(1 for package_id, _ in site.started if package_id == long)
    return started, len(site.started) - started
