"""The settings of a master that its operator may change."""

from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(gt=0)]
"""A figure above zero. With a `lifetime_s` of zero, for example, each package would fail as soon as it starts."""


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one deployment. A name with `_us` is a time in microseconds, and one with `_s` a time in seconds.

    Attributes:
        chunk_target_us: How long a chunk should keep an executor busy. This time is short where a request costs little.
        longest_chunk_us: The time that replaces `chunk_target_us` for very many executors. The more executors there
            are, the sooner one of them is free for another account, so the longer chunks may last.
        shares_chunks: Whether a chunk is for all executors of a worker, which share it, and not for one executor. The
            worker then needs fewer requests, and its results arrive later. So the setting is False where a request
            costs little.
        first_window: The number of chunks that a package may have open before durations are measured. A package of at
            most planning.SMALL_PACKAGE tasks may have more.
        largest_window: The size to which the window of a package may grow, with up to planning.LARGE_FLEET executors.
            Each open chunk takes room in the head.
        lease_s: A worker that sends no beat for this long loses its chunks to others.
        slice_us: The most compute time that a package reserves ahead for each of its executors, once durations are
            measured.
        task_timeout_s: The longest time that one task may run.
        lifetime_s: A package fails if not all of its tasks are done this long after its start.
        retention_s: A package that no client has acknowledged is deleted this long after its end.
        tombstone_s: The tombstone of a deleted package is kept for this time.
        kept_bytes: If an ended package stores fewer bytes than this, inline task code included, its data and results
            are removed together with its tombstone, because a separate removal takes time, and may cost requests. The
            data and results of any other package are removed as soon as the package is settled and is either
            acknowledged or expired.
        fleet_memory_s: A package stops counting a worker if the worker has published no results of this package for
            this long. A worker that has not retrieved, published or extended leases for this long counts as gone.
        grace_s: If there are live workers, but none of them has a package's version of Python, the package waits this
            long for such a worker before it fails. If there are no workers, the package waits without this limit.
        open_packages, open_small_packages: If an account has this many packages running and chunks wait in the queue,
            its next package starts closed. `open_small_packages` is the number if the next package has at most
            planning.SMALL_PACKAGE tasks. A package that a task starts may be open beyond this number, if fewer than
            planning.NESTED_PACKAGES open packages have its nesting depth or a greater one.
        looks_at_end: Whether the master looks for the next closed package of an account, to open it, when a publication
            or a cancellation ends an open package. On AWS looking costs requests, so there the setting is False, and
            closed packages open when their clients await them, or when executors are idle.
        saves_first_sent: Whether the master saves a head at once to record that the first chunks of a package are in
            the queue. It should, if another process of the master is going to fold the first results. All other chunks
            are recorded with the package's next event, because a save only for that would double the cost of a fold.
        send_again_s: If no event has come for this long after the master sent chunks that the head does not record as
            sent, the master sends them again, since it may have died before it sent them. For five minutes the queue
            drops the second copy of a chunk. Such a repetition costs requests on AWS, so there the time is longer.
        fold_pause_s: If a package has ever had `many_workers` workers, publications and give-backs wait in its inbox
            for this long after each fold; 0: each is folded at once. Where each fold writes the head to a table, the
            requests of many workers would otherwise write the head more often than the table permits.
        many_workers: The number of workers from which a package gets a pause between its folds.
        fold_bytes: At most this many bytes of a request's results go into one fold; only a single event may have more.
            The results of a fold become one result page, which travels in one answer. Where one thread serves all
            requests, a longer fold, or an answer with a larger page, would delay the other requests. On AWS each fold
            costs requests, so there folds are larger.
        longest_await_s: The longest time that a client waits between two requests for results.
        holds_requests: Whether the master holds a client's request until there is news. If not, the client waits after
            each answer, even after one with news.
        requests_per_s: The requests per second that a process of the master accepts from one account after a burst.
        request_burst: The number of requests of one account that may come at once.
        running_packages: The number of packages that an account may have running. This limit and the next two are
            checked when a package starts. Starts at the same moment do not count each other, so together they may
            exceed a limit.
        running_tasks: The number of tasks that the running packages may have in all, done or not.
        running_bytes: The bytes of task data that the running packages may have in all.
        stored_bytes: The bytes that an account may store. Beyond this limit its uploads wait and, if the blob store can
            be full (not S3), its starts. Its uploads count, and so does all that its packages keep until they are
            deleted. Results of running packages are stored even beyond this limit. The limit does not apply to the
            default account, which belongs to the user who runs the master.
    """

    chunk_target_us: Count = 200_000
    longest_chunk_us: Count = 200_000
    shares_chunks: bool = False
    first_window: Count = 8
    largest_window: Count = 400
    lease_s: Amount = 6.0
    slice_us: Count = 30_000_000
    task_timeout_s: Amount = 3600.0
    lifetime_s: Amount = 14 * 86400.0
    retention_s: Amount = 7 * 86400.0
    tombstone_s: Amount = 86400.0
    kept_bytes: Annotated[int, Meta(ge=0)] = 2_048
    fleet_memory_s: Amount = 60.0
    grace_s: Amount = 10.0
    open_packages: Count = 50
    open_small_packages: Count = 200
    looks_at_end: bool = True
    saves_first_sent: bool = False
    send_again_s: Amount = 2.0
    fold_pause_s: Annotated[float, Meta(ge=0)] = 0.0
    many_workers: Count = 16
    fold_bytes: Count = 256 * 1024
    longest_await_s: Amount = 5.0
    holds_requests: bool = True
    requests_per_s: Amount = 1_000.0
    request_burst: Count = 5_000
    running_packages: Count = 1_000
    running_tasks: Count = 20_000_000
    running_bytes: Count = 16 * 1024**3
    stored_bytes: Count = 50 * 1024**3
