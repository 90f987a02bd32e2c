"""An agent is stopped past the end of its leases: its late publications do not change its rival's results."""

import signal
from collections.abc import Callable
from pathlib import Path

from cloudpar_protocol import routes
from support.books import close_books
from support.customer import Customer
from support.scale import Scale
from support.task_functions import pid_after_gate
from support.waiting import HANG_S, until
from system.fleet import Fleet, Member
from system.site import Site

LEASE_S = 1.0


def late_publications(site: Site, zombie: Member, package_id: str) -> int:
    """Return how many publications with results of a package a worker sent; 0 until it has closed all its leases."""
    open_leases, count = set(), 0
    for entry in site.journal():
        if entry.worker_id != zombie.worker_id:
            continue
        for portion in entry.portions:
            if portion.package_id != package_id:
                continue
            if entry.route == routes.RETRIEVE_TASKS.name:
                open_leases.add(portion.lease_id)
            elif portion.closes:
                open_leases.discard(portion.lease_id)
            count += entry.route == routes.PUBLISH_RESULTS.name and bool(portion.ranges)
    return 0 if open_leases else count


def test_g03_results_of_an_agent_that_was_stopped_count_once(
    tmp_path: Path, scale: Scale, reached: Callable[[str], None]
) -> None:
    """The stopped agent's executors continue, so that it finds their results when it continues."""
    rounds, chunks = scale((1, 5), (5, 20))
    late = charged_us = 0
    with (
        Site(tmp_path / "site", lease_s=LEASE_S) as site,
        Fleet(site, 1, executors=chunks) as zombies,
        Fleet(site, 0, executors=chunks) as rivals,
    ):
        customer, (zombie,) = Customer(site, "haunted"), zombies.members
        for number in range(rounds):
            marks, gate = tmp_path / f"marks {number}", tmp_path / f"gate {number}"
            marks.mkdir()
            with customer.pool() as pool:
                results = pool.map(pid_after_gate, [(str(marks), str(gate))] * chunks, chunksize=1)
                package_id = results.package_id
                assert package_id is not None
                await_marks(marks, chunks)
                zombie.process.send_signal(signal.SIGSTOP)
                rival = rivals.start().wait_until_ready()
                await_marks(marks, chunks + 1)
                gate.touch()
                books = close_books(site, customer.token, package_id)
                theirs = {executor.pid for executor in rival.descendants()}
                assert set(results) <= theirs
                rivals.lose(signal.SIGTERM)
                assert rival.wait() == 0
                zombie.process.send_signal(signal.SIGCONT)
                late += await_publications(site, zombie, package_id)
                again = close_books(site, customer.token, package_id)
                assert again.results == books.results
                assert (again.last.state, again.last.progress.done) == ("completed", chunks)
                assert again.last.progress.charged_us == books.execute_us
            charged_us += books.execute_us
            assert sorted(result.index for result in books.results) == list(range(chunks))
            account = customer.account()
            assert (account.spent_us, account.reserved_us) == (charged_us, 0)
        zombie.process.terminate()
        assert zombie.process.wait(HANG_S) == 0
    assert late >= rounds * chunks
    figure = f"{late}/{late} late publications changed nothing"
    reached(f"agent stopped past its leases, rival finished, agent went on: {figure}")


def await_marks(folder: Path, tasks: int) -> None:
    """Wait until at least this many tasks have started."""
    until(lambda: len(list(folder.iterdir())) >= tasks)


def await_publications(site: Site, zombie: Member, package_id: str) -> int:
    """Wait until a worker has closed its leases of a package, and return the number of its publications."""
    until(lambda: late_publications(site, zombie, package_id) > 0)
    return late_publications(site, zombie, package_id)
