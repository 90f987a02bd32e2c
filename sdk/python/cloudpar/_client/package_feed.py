"""The packages of one map: the next one starts with the next values, once the reader has made room for it."""

import time
from collections.abc import Callable, Iterable
from typing import Any

from cloudpar._arguments.map_options import MapOptions
from cloudpar._arguments.pool_options import PoolOptions
from cloudpar._serialization.packing import pack
from cloudpar._serialization.project.shipment import Shipper
from cloudpar._serialization.task_code import Code
from cloudpar_protocol.payloads import CallStyle

from .interruption import interrupt
from .package_handle import PackageHandle
from .places import Places, values_of
from .result_buffer import MapPart, ResultBuffer
from .session import Order, Session


class PackageFeed:
    """Starts the packages of one map, one after the other. Used by one reader at a time.

    Args:
        session: Where the packages start.
        shipper: Adds the modules that task code needs.
        code_of: Serializes the function.
        function: What runs on each value.
        values: One a task.
        call: How the function is called with a value.
        options: Of this map.
        defaults: Of the pool, for what the map's options leave open.
        name: Of the function, for those who look at the package; by default its own.
        modules: More modules that the tasks need.
        keep: Stays alive as long as the feed.

    Attributes:
        buffer: The results that nobody has read yet.
        parts: The packages with results that are still to be read.
        package_ids: Those of all packages that have started.
        given: How many tasks they have.
        more: Whether another package may follow.
        error: Why the next package could not start; its place is behind the tasks of the others.
        deadline: Of the monotonic clock, for all results.
    """

    def __init__(
        self,
        session: Session,
        shipper: Shipper,
        *,
        code_of: Callable[[Any], Code],
        function: Any,
        values: Iterable[Any],
        call: CallStyle,
        options: MapOptions,
        defaults: PoolOptions,
        name: str | None = None,
        modules: frozenset[str] = frozenset(),
        keep: object = None,
    ) -> None:
        self.session = session
        self.options = options
        self._defaults = defaults
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
        self._name = name
        self._modules = modules
        self._keep = keep
        self._code: Code | None = None  # what it captures is copied once, also for many packages
        self.given = 0

    def refill(self) -> None:
        """Start the next package, once a part of the buffer is free.

        That is a quarter, so that executors have tasks while the reader works. It is half if the tasks are known to be
        short: then packages cost more than the tasks, and half as many are better.

        Raises:
            Exception: The first package cannot start. A later one's error waits until the results before it are read.
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
            part = self._start(limit)
        except Exception as error:
            self.more = False
            if not self.given:
                raise
            self.error = error
            return
        self.more = part is not None and limit is not None and part.n == limit
        if part is not None:
            self.parts.append(part)
            self.given += part.n
            if part.handle is not None:
                self.package_ids.append(part.handle.id)

    def _are_short(self, tasks: int) -> bool:
        """Whether as many tasks as the buffer holds are so little work that a package costs more."""
        handle = self.parts[-1].handle if self.parts else None
        return handle is not None and self.session.are_short(handle, tasks)

    def _start(self, limit: int | None) -> MapPart | None:
        self.session.check()
        if limit is not None and self.session.closed:
            raise RuntimeError(
                "the pool was shut down before all values of this map were sent "
                f"(buffersize={self.options.buffersize}): read its results to their end before the pool ends, or leave "
                "out buffersize"
            )
        began = time.perf_counter()
        code = self._code = self._code or self._code_of(self._function)
        key = self.session.package_key()
        packed = pack(self._iterator, limit, code.codec, key.seals, key.folder, first=self.given, call=self._call)
        if packed is None:
            return None
        packed.needs.modules.update(self._modules)
        shipped = self._shipper.ship(code, packed.needs)
        if limit is None:
            self._code = None  # it may be large, and there is only this package
        order = Order(
            code=shipped if self._name is None else shipped._replace(name=self._name),
            packed=packed,
            call=self._call,
            options=self.options.completed(self._defaults),
            serialize_s=time.perf_counter() - began,
            package_key=key,
            places=self._places(packed.n, limit),
        )
        part = self.buffer.add_part(self.given, packed.n)
        try:
            self.session.start(order, part)
        except KeyboardInterrupt:
            if part.handle is not None:
                interrupt(self.session, [part.handle])
            raise
        return part

    def _places(self, n: int, limit: int | None) -> Places:
        if limit is None:
            return Places(self.given, n, values_of(self._values), self._call)
        return Places(self.given)

    def under_way(self) -> list[PackageHandle]:
        """Its packages that have not been read to the end."""
        return [part.handle for part in self.parts if part.handle is not None and part.unread]
