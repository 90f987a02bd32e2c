"""What an operator may set, as far as the core depends on it."""

from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(gt=0)]
"""A figure above zero: with zero, a master would refuse or fail every request."""


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Figures of one deployment.

    Attributes:
        chunk_target_us: How long a chunk should keep an executor busy. Short where a call costs little.
        longest_chunk_us: The same for very many executors. The more there are, the sooner one of them is free for
            another account, so the longer chunks may last.
        first_window: Chunks that a package opens before anything is measured.
        largest_window: Chunks that a package has open at most; bounds the head.
        lease_s: A worker that does not beat for this long loses its chunks to others.
        slice_us: Compute time that a package reserves ahead for each of its executors.
        task_timeout_s: The most that one task may run.
        lifetime_s: A package that still runs after this time fails.
        retention_s: An ended package that no client acknowledged is deleted after this time.
        tombstone_s: The tombstone of a deleted package is kept for this time.
        kept_bytes: If an ended package stores fewer bytes than this, its data is removed together with its tombstone,
            because a separate removal may cost calls. The data of a larger package is removed as soon as its client no
            longer needs it.
        fleet_memory_s: A worker that published nothing for this long no longer counts for its package. A worker that
            sent no request for this long counts as gone.
        grace_s: A package waits this long for a worker that has its version of Python before it fails.
        open_packages, open_small_packages: How many packages of an account may be open while chunks wait in the queue.
            A further one has no chunks and no reserve until one of these has ended or executors idle.
        looks_at_end: Whether the master opens the next waiting package of an account as soon as one ends. Where looking
            for it costs calls, an await of that package opens it instead.
        requests_per_s: How many requests a second a process of the master accepts from one account, after a burst.
        request_burst: How many requests of one account may come at once.
        running_packages: Packages that an account may have running. This limit and the next two are checked when a
            package starts. Starts at the same moment do not count each other, so together they may exceed a limit.
        running_tasks: Tasks that the running packages may have in all, done or not.
        running_bytes: Bytes of task data that the running packages may have in all.
    """

    chunk_target_us: Count = 200_000
    longest_chunk_us: Count = 200_000
    first_window: Count = 8
    largest_window: Count = 400
    lease_s: Amount = 6.0
    slice_us: Count = 30_000_000
    task_timeout_s: Amount = 3600.0
    lifetime_s: Amount = 14 * 86400.0
    retention_s: Amount = 7 * 86400.0
    tombstone_s: Amount = 86400.0
    kept_bytes: Annotated[int, Meta(ge=0)] = 0
    fleet_memory_s: Amount = 60.0
    grace_s: Amount = 10.0
    open_packages: Count = 50
    open_small_packages: Count = 200
    looks_at_end: bool = True
    requests_per_s: Amount = 1_000.0
    request_burst: Count = 5_000
    running_packages: Count = 1_000
    running_tasks: Count = 20_000_000
    running_bytes: Count = 16 * 1024**3
