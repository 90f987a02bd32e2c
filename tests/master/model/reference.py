"""What the services promise, as simply as it can be said: sets of tasks, and sums."""

from msgspec import Struct
from msgspec.structs import replace

from cloudpar_protocol import ranges
from cloudpar_protocol.payloads import Range, TaskResult
from cloudpar_protocol.worker_messages import Lease


class Package(Struct):
    """One package.

    Attributes:
        body: What it was started with.
        committed: Tasks that have a result, and how long they took, in the order in which they got it.
        cancelled: Tasks that have none because they were cancelled one by one.
        read: So many of the committed ones were read, up to `cursor`.
        said_us: The longest that was published of each task, whether or not it counts.
        ended: How, as far as anybody was told.
    """

    account: str
    tasks: int
    body: object
    committed: dict[int, int] = {}
    cancelled: set[int] = set()
    read: int = 0
    cursor: int = 0
    said_us: dict[int, int] = {}
    ended: str = ""
    gone: bool = False

    @property
    def used_us(self) -> int:
        """What its results took."""
        return sum(self.committed.values())

    @property
    def done(self) -> bool:
        """No task is left."""
        return len(self.committed) + len(self.cancelled) == self.tasks

    def publish(self, results: list[TaskResult]) -> None:
        """The first result of a task counts, while its package runs."""
        for result in results:
            self.said_us[result.index] = max(result.duration_us, self.said_us.get(result.index, 0))
            open_ = not self.ended and result.index not in self.cancelled and result.outcome != "cancelled"
            if open_ and result.index not in self.committed:
                self.committed[result.index] = result.duration_us

    def cancel(self, numbers: list[Range]) -> None:
        """These tasks were cancelled."""
        gone = {index for start, end in numbers for index in range(start, end)}
        assert not gone & self.committed.keys(), "a task that has its result was cancelled"
        self.cancelled |= gone


class Reference:
    """All packages, and who may run what.

    Attributes:
        live: Leases that have not ended: by their number, with the time until which they are good.
    """

    def __init__(self) -> None:
        self.packages: dict[str, Package] = {}
        self.live: dict[int, tuple[Lease, float]] = {}

    def lease(self, number: int, lease: Lease, now: float) -> None:
        """A lease is for tasks that are left, and for nobody else's."""
        package = self.packages[lease.package_id]
        assert not package.ended, "a lease of a package that has ended"
        for start, end in lease.ranges:
            assert not package.committed.keys() & range(start, end), "a lease of what has its result"
            assert not package.cancelled & set(range(start, end)), "a lease of what was cancelled"
        for other, until in self.live.values():
            if until > now and other.package_id == lease.package_id and other.receipt != lease.receipt:
                both = ranges.intersect(lease.ranges, ranges.union(other.ranges))
                assert not both, f"two live leases of {both}"
        # An attempt again brings the same lease, and no more time: that comes with its first beat.
        same = [until for other, until in self.live.values() if other.receipt == lease.receipt]
        self.live[number] = lease, max(same, default=now + lease.lease_s)

    def give_back(self, lease: Lease, numbers: list[Range]) -> None:
        """What is given back is anybody's.

        The master knows a lease by its generation only. So who has lost a chunk, and gives it back all the same, has
        it queued once more although its next holder may be at it: of two results the first one counts.
        """
        for number, (other, until) in self.live.items():
            if (other.package_id, other.generation) == (lease.package_id, lease.generation):
                left = ranges.subtract(other.ranges, ranges.union(numbers))
                self.live[number] = replace(other, ranges=left), until

    def close(self, lease: Lease) -> None:
        """Its holder has done with it."""
        self.live = {number: held for number, held in self.live.items() if held[0].receipt != lease.receipt}
