"""Starts the packages of one map. With `buffersize` the next package starts once enough results have been read."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from cloudpar._arguments.map_options import MapOptions
from cloudpar._formatting.tracebacks import shorten
from cloudpar._serialization.packing import pack
from cloudpar.errors import SerializationError
from cloudpar_protocol.payloads import CallStyle

from .orders import Order
from .package_handle import PackageHandle
from .places import Places, values_of
from .result_buffer import MapPart, ResultBuffer

if TYPE_CHECKING:
    from cloudpar._serialization.project.shipment import Shipper
    from cloudpar._serialization.task_code import Code

    from .session import Session


class PackageFeed:
    """Starts the packages of one map, one after the other. Only one thread at a time may use it.

    Args:
        session: Starts the packages.
        shipper: Adds the modules that task code needs.
        code_of: Serializes the function. If its argument is task code already, it returns the argument.
        function: The function that runs on each value, or its task code.
        values: The values, one for each task.
        call: How the function is called with a value.
        options: The options of this map, completed by the options of its pool.
        keep: An object that is kept alive as long as the feed, such as the pool.

    Attributes:
        buffer: The results that were received and not yet read.
        parts: The packages with results that are still to be read.
        package_ids: The ids of all packages that have started.
        given: How many tasks the started packages have in total.
        more: Whether another package may follow.
        error: Why no further package could start; None if there is no such error. The reader raises it after the
            results of the earlier packages.
        deadline: When reading must end, on the monotonic clock; None if there is no limit.
    """

    def __init__(
        self,
        session: "Session",
        shipper: "Shipper",
        *,
        code_of: "Callable[[Any], Code]",
        function: Any,
        values: Iterable[Any],
        call: CallStyle,
        options: MapOptions,
        keep: object = None,
    ) -> None:
        self.session = session
        self.options = options
        self.buffer = ResultBuffer(session.read)
        self.parts: list[MapPart] = []
        self.package_ids: list[str] = []
        self.more = True
        self.error: Exception | None = None
        self.deadline = None if options.timeout is None else time.monotonic() + options.timeout
        self._shipper = shipper
        self._code_of = code_of
        self._function = function
        self._values = values
        self._iterator = values if options.buffersize is None else iter(values)
        self._call = call
        self._keep = keep
        self.given = 0

    def refill(self) -> None:
        """Start the next package if enough of the buffer is free. Without `buffersize`, start the only package.

        Usually a quarter of the buffer must be free, so that executors have tasks while the reader works. If the tasks
        are known to be short, half of the buffer must be free. Fewer packages are better in this case, because starting
        a package costs more than running its tasks.

        Raises:
            Exception: The first package cannot start. If a later package cannot start, this method keeps the exception
                in `error`.
        """
        if not self.more:
            return
        limit = self.options.buffersize
        if limit is not None:
            free = limit - sum([part.unread for part in self.parts])
            if free < max(1, limit // 4) or (free < limit // 2 and self._are_short(limit)):
                return
            limit = free
        try:
            self._start(limit)
        except Exception as error:
            self.more = False
            if not self.given:
                raise
            self.error = error

    def _are_short(self, tasks: int) -> bool:
        """Whether this many tasks are known to be little work; see `TaskLengths`."""
        handle = self.parts[-1].handle if self.parts else None
        return handle is not None and self.session.are_short(handle, tasks)

    def _start(self, limit: int | None) -> None:
        self.session.end.check()
        if limit is not None and self.session.end.reached:
            raise RuntimeError(
                "the pool was shut down before all values of this map were sent "
                f"(buffersize={self.options.buffersize}): read its results to their end before the pool ends, or leave "
                "out buffersize"
            )
        started_at = time.perf_counter()
        code = self._function = self._code_of(self._function)  # so the function is serialized once for all packages
        key = self.session.package_key()
        packed = pack(self._iterator, limit, code.codec, key.seals, key.folder, first=self.given, call=self._call)
        self.more = packed is not None and limit is not None and packed.n == limit
        if packed is None:
            return
        if packed.n:
            shipped = self._shipper.ship(code, packed.needs)
            if limit is None:
                self._function = None  # free the function, since it may be large and no package follows
            serialize_s = time.perf_counter() - started_at
            places = self._places(packed.n, limit)
            order = Order(shipped, packed, self._call, self.options, serialize_s, key, places)
            part = MapPart(self.buffer, self.given, packed.n)
            try:
                self.session.start(order, part)
            except KeyboardInterrupt:
                if part.handle is not None:
                    self.session.cancellations.interrupt([part.handle])
                raise
            self._add(part)
        if packed.failure is not None:
            self._fail_next(packed.failure, packed.refused)

    def _fail_next(self, failure: Exception, refused: bool) -> None:
        """For a value that cannot be sent, store the error as its result, and continue with the next value.

        Raises:
            Exception: `failure` itself, if it is not the error of a value but of the iterable or of the payload folder.
        """
        if not (refused and isinstance(failure, SerializationError)):
            raise failure
        failure.task_index = self.given
        shorten(failure)  # otherwise its traceback would keep the values of this package alive
        part = MapPart(self.buffer, self.given, 1)
        part.end(failure)
        self._add(part)
        self.more = True

    def _add(self, part: MapPart) -> None:
        self.parts.append(part)
        self.given += part.n
        if part.handle is not None:
            self.package_ids.append(part.handle.id)

    def _places(self, n: int, limit: int | None) -> Places:
        if limit is None:
            return Places(self.given, n, values_of(self._values), self._call)
        return Places(self.given)

    def under_way(self) -> list[PackageHandle]:
        """Return the packages that have unread results."""
        return [part.handle for part in self.parts if part.handle is not None and part.unread]
