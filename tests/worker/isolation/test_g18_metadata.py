"""Guarantee 18, instance metadata: what task code reaches of them where no stack of ours is around the worker.

Nothing of an executor refuses an address. So the quick form tells what the machine does, and the full one fails where
it answers; on AWS, see tests/aws/test_g18_metadata.py.
"""

import socket
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from cloudpar.cli.doctor import METADATA
from guarantees.scale import Scale
from worker.isolation.probes import network
from worker.isolation.shared import Shared, found

Place = tuple[str, int]
PLACES: list[Place] = [(urlsplit(url).hostname or "", 80) for url in METADATA]


@pytest.fixture(scope="module")
def shared(start: Callable[..., Shared], mode: str) -> Shared:
    return start(mode, executors=1)


def answers_a_task(shared: Shared, place: Place) -> bool:
    return found(shared.run(network.metadata, clues={"metadata": place}))


def answers_everybody(place: Place) -> bool:
    try:
        return bool(network.metadata({"metadata": place}))
    except OSError:
        return False


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[0])
def test_g18_a_task_reaches_no_more_than_the_machine_lets(
    shared: Shared, place: Place, scale: Scale, reached: Callable[[str], None]
) -> None:
    reaches = answers_a_task(shared, place)
    assert reaches <= answers_everybody(place)
    told = "answers here, to every process of this machine" if reaches else "refused or silent here"
    reached(f"metadata at {place[0]} from task code: {told}")
    assert not scale(False, reaches)


def test_g18_the_probe_finds_a_service_that_answers(shared: Shared) -> None:
    """As docs/isolation.md says: where the machine and its network refuse nothing, nobody does."""
    with socket.create_server(("127.0.0.1", 0)) as service:
        place = service.getsockname()
        assert answers_a_task(shared, place)
    assert not answers_a_task(shared, place)
