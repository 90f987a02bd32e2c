"""What the services promise, written as simply as possible: sets of tasks, and sums."""

from msgspec import Struct
from msgspec.structs import replace

from cloudpar_protocol import ranges
from cloudpar_protocol.payloads import Range, TaskResult
from cloudpar_protocol.worker_messages import Lease


class Package(Struct):
    """One package.

    Attributes:
        body: The account and the key that it was started with.
        committed: Tasks that have a result, with their durations, in the order in which they got it.
        cancelled: Tasks that have no result because they were cancelled one by one.
        read: How many of the committed ones its client has read, up to `cursor`.
        said_us: The longest duration that was published for each task, whether or not it counts.
        ended: How it ended, as far as the master has reported it to a caller; "": it runs.
        sent_again: Whether no worker has reported for so long that its chunks were sent again (ADR 0041).
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
    sent_again: bool = False

    @property
    def used_us(self) -> int:
        """The time that its results took."""
        return sum(self.committed.values())

    @property
    def done(self) -> bool:
        """Whether no task is left."""
        return len(self.committed) + len(self.cancelled) == self.tasks

    def publish(self, results: list[TaskResult]) -> None:
        """Take results: the first result of a task counts, while its package runs."""
        for result in results:
            self.said_us[result.index] = max(result.duration_us, self.said_us.get(result.index, 0))
            open_ = not self.ended and result.index not in self.cancelled and result.outcome != "cancelled"
            if open_ and result.index not in self.committed:
                self.committed[result.index] = result.duration_us

    def cancel(self, numbers: list[Range]) -> None:
        """Note that these tasks were cancelled."""
        gone = {index for start, end in numbers for index in range(start, end)}
        assert not gone & self.committed.keys(), "a task that has its result was cancelled"
        self.cancelled |= gone


class Reference:
    """All packages, and which worker may run what.

    Attributes:
        live: The leases that have not ended, by their number, with the time when they run out.
    """

    def __init__(self) -> None:
        self.packages: dict[str, Package] = {}
        self.live: dict[int, tuple[Lease, float]] = {}

    def lease(self, number: int, lease: Lease, before: Package, now: float) -> None:
        """Check that a lease is for tasks that are left, and that no other live lease has them.

        The exception: what is left of a chunk is sent again as a chunk of these tasks only (ADR 0041). The queue does
        not recognize it, and may deliver both. If both come in one retrieval, and a client has cancelled what no worker
        has taken, the master leases the older message, and cancels the tasks of the newer one, which may be the same
        tasks, and may end the package.

        Args:
            number: The number of the lease.
            lease: The lease.
            before: The package before the retrieval that brought the lease.
            now: The time.
        """
        package = self.packages[lease.package_id]
        before = before if package.sent_again else package
        assert not before.ended, "a lease of a package that has ended"
        for start, end in lease.ranges:
            assert not package.committed.keys() & range(start, end), "a lease of what has its result"
            assert not before.cancelled & set(range(start, end)), "a lease of what was cancelled"
        for other, until in self.live.values():
            if until > now and other.package_id == lease.package_id and other.receipt != lease.receipt:
                both = ranges.intersect(lease.ranges, ranges.union(other.ranges))
                is_rest = package.sent_again and (other.start, other.end) != (lease.start, lease.end)
                assert not both or is_rest, f"two live leases of {both}"
        # A repeated attempt brings the same lease without more time, which only a beat brings.
        same = [until for other, until in self.live.values() if other.receipt == lease.receipt]
        self.live[number] = lease, max(same, default=now + lease.lease_s)

    def give_back(self, lease: Lease, numbers: list[Range]) -> None:
        """Take tasks that are given back out of all leases: any worker may lease them now.

        The master knows a lease by its generation only. A worker that has lost a chunk and gives it back nevertheless
        makes the master queue it once more, although its next holder may run it: the first of two results counts.
        """
        for number, (other, until) in self.live.items():
            if (other.package_id, other.generation) == (lease.package_id, lease.generation):
                left = ranges.subtract(other.ranges, ranges.union(numbers))
                self.live[number] = replace(other, ranges=left), until

    def close(self, lease: Lease) -> None:
        """End a lease. Any worker may lease the tasks that it has not reported."""
        self.give_back(lease, [(lease.start, lease.end)])
        self.live = {number: held for number, held in self.live.items() if held[0].receipt != lease.receipt}
