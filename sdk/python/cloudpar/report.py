"""What running a package cost: the six points that the first system's own evaluation measured."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """One package's measurements. All times are sums over its tasks, in seconds, except for `await_s`.

    Attributes:
        package_id: Which package.
        tasks: How many tasks it had.
        errors: How many of them ended in an error.
        executors: The most executors that worked on it at the same time.
        charged_s: The execution time that was deducted from the quota.
        serialize_s: Point 1: making task code and task data from objects, at the client.
        retrieve_s: Point 2: getting the tasks, at the workers.
        execute_s: Point 3: running them, unpickling included.
        publish_s: Point 4: handing in their results, at the workers.
        deserialize_s: Point 5: making objects from the results, at the client.
        await_s: Point 6: wall time from the package's start to its last result, at the client.

    Example:
        >>> from cloudpar import Pool
        >>> with Pool(workers=2) as pool:
        ...     squares = list(pool.map(lambda x: x * x, range(4)))
        ...     report = pool.last_report
        >>> squares, report.tasks, report.execute_s > 0
        ([0, 1, 4, 9], 4, True)
    """

    package_id: str
    tasks: int
    errors: int
    executors: int
    charged_s: float
    serialize_s: float
    retrieve_s: float
    execute_s: float
    publish_s: float
    deserialize_s: float
    await_s: float

    def points_s(self) -> tuple[float, float, float, float, float, float]:
        """The six points in their order."""
        return (
            self.serialize_s, self.retrieve_s, self.execute_s,
            self.publish_s, self.deserialize_s, self.await_s,
        )  # fmt: skip
