"""A token bucket: it bounds how often an account may send requests."""

from typing import NamedTuple


class Bucket(NamedTuple):
    """The number of requests (`free`) that an account could send at the time `at`, in seconds."""

    free: float
    at: float


def take(bucket: Bucket, now: float, per_s: float, burst: float) -> tuple[Bucket, float]:
    """Take one request out of a bucket that fills by `per_s` requests a second, up to `burst`.

    Returns the new bucket, and after how many seconds the bucket will have a request; 0.0 if the request was taken. If
    the clock was set back, this call does not fill the bucket, and the next call counts from the new time.

    >>> full = Bucket(2.0, at=100.0)
    >>> take(full, 100.0, 4.0, 2.0)
    (Bucket(free=1.0, at=100.0), 0.0)
    >>> take(Bucket(0.5, at=100.0), 100.0, 4.0, 2.0)
    (Bucket(free=0.5, at=100.0), 0.125)
    >>> take(Bucket(0.0, at=100.0), 90.0, 4.0, 2.0)
    (Bucket(free=0.0, at=90.0), 0.25)
    """
    free = min(burst, bucket.free + max(0.0, now - bucket.at) * per_s)
    if free >= 1.0:
        return Bucket(free - 1.0, now), 0.0
    return Bucket(free, now), (1.0 - free) / per_s
