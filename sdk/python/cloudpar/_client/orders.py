"""A package to start, and the request that starts it."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudpar._arguments.map_options import MapOptions
from cloudpar._arguments.retry import ONCE
from cloudpar_protocol.client_messages import StartTasks
from cloudpar_protocol.payloads import CallStyle, TaskCode, TaskData

from .package_key import PackageKey
from .places import Places

if TYPE_CHECKING:
    from cloudpar._serialization.packing import Packed
    from cloudpar._serialization.task_code import Code

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Order:
    """A package to start: its task code, its task data, and how the code is called with the data."""

    code: "Code"
    packed: "Packed"
    call: CallStyle
    options: MapOptions
    serialize_s: float
    package_key: PackageKey
    places: Places

    def message(
        self,
        code: TaskCode,
        data: TaskData,
        *,
        session: str,
        chunksize: int | None,
        threads_per_task: int | None,
        depth: int,
    ) -> StartTasks:
        """Return the request that starts the package.

        Args:
            code: The task code, inline or uploaded.
            data: The task data, inline or uploaded.
            session: The session's id.
            chunksize: How many tasks each chunk has; None lets the master decide.
            threads_per_task: See `Pool`.
            depth: The package's nesting depth.
        """
        key, seals, _ = self.package_key
        call, codec, tasks = self.call, self.code.codec, self.packed.n
        retry = self.options.retry or ONCE
        seal = None
        if seals is not None:
            seal = seals.code(code, data, call=call, codec=codec, python=PYTHON, tasks=tasks)
        return StartTasks(
            idempotency_key=key, session=session, name=self.code.name, n=tasks,
            code=code, data=data, call=call, codec=codec, python=PYTHON,
            chunksize=chunksize, task_timeout_s=self.options.task_timeout_s,
            retries=retry.retries, retry_on=list(retry.names),
            threads_per_task=threads_per_task, depth=depth, seal=seal,
        )  # fmt: skip
