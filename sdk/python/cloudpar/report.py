"""`Report`: the cost of a package, measured at six points from serializing the tasks to reading their results."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """The measurements of one package. All times are in seconds, and all except `await_s` are sums over the package.

    Attributes:
        package_id: The package's id.
        tasks: The number of the package's tasks.
        errors: The number of the package's tasks that ended in an error.
        executors: The largest number of executors that worked on the package at the same time, as the master reported
            it.
        charged_s: The execution time that was deducted from the account's quota.
        serialize_s: Point 1, at the client: serializing task code and task data.
        retrieve_s: Point 2, at the workers: fetching the tasks.
        execute_s: Point 3, at the workers: running the tasks whose results the client has received. This includes
            unpickling.
        publish_s: Point 4, at the workers: sending the results.
        deserialize_s: Point 5, at the client: deserializing the results that were read.
        await_s: Point 6, at the client: wall time from the package's start (for an attached package, from the call of
            `Pool.attach`) until its last result.

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
        """Return the times of points 1 to 6, in seconds."""
        return (
            self.serialize_s, self.retrieve_s, self.execute_s,
            self.publish_s, self.deserialize_s, self.await_s,
        )  # fmt: skip
