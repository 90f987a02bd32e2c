"""What an event says that was stored without some of its fields."""

import msgspec
import pytest

from cloudpar_master.core.events import CancelAsked, Event, GaveBack, Published, QuotaGranted, Stranded


@pytest.mark.parametrize(
    ("stored", "event"),
    [
        (
            {"type": "published", "worker_id": "w", "executors": 1, "generation": 2, "results": []},
            Published(
                worker_id="w", executors=1, generation=2, results=[], wait_us=0, retrieve_us=0, publish_us=0,
                refused=None, message=None, closed=None,
            ),
        ),
        (
            {"type": "gave_back", "generation": 2, "ranges": []},
            GaveBack(generation=2, ranges=[], losses=0, unfit=None, used_us=0, closed=None, number=0),
        ),
        (
            {"type": "quota_granted", "slice": 0, "granted_us": 0, "exhausted": False},
            QuotaGranted(slice=0, granted_us=0, exhausted=False, packages=0),
        ),
        (
            {"type": "cancel_asked"},
            CancelAsked(ranges=None, only_queued=False, reason="cancelled", message="cancelled by its client"),
        ),
        ({"type": "stranded"}, Stranded(message=None)),
    ],
    ids=["published", "gave_back", "quota_granted", "cancel_asked", "stranded"],
)  # fmt: skip
def test_a_field_that_a_stored_event_lacks_means_nothing(stored: dict[str, object], event: Event) -> None:
    """Another default would change the events that wait for a fold."""
    assert msgspec.convert(stored, Event) == event


@pytest.mark.parametrize(
    "event",
    [
        Published(worker_id="w", executors=1, generation=2, results=[]),
        GaveBack(generation=2, ranges=[]),
        CancelAsked(),
        Stranded(),
    ],
)
def test_frequent_events_are_stored_without_what_means_nothing(event: msgspec.Struct) -> None:
    required = {each.name for each in msgspec.structs.fields(event) if each.required}
    assert msgspec.to_builtins(event).keys() == {"type", *required}
