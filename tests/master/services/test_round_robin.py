"""Each package is chosen in some request, however many workers send requests."""

from cloudpar_master.services.round_robin import REMEMBERED, RoundRobin


def test_the_requests_of_more_workers_than_are_remembered_choose_all_packages() -> None:
    rounds, packages = RoundRobin(), [f"p{number:03}" for number in range(300)]
    chosen: set[str] = set()
    for number in range(2 * (REMEMBERED + 1)):
        chosen.update(rounds.next(f"w{number % (REMEMBERED + 1)}", packages, 100))
    assert chosen == set(packages)
