"""Runs the functions of a deployment: processes of the real master, whose requests to AWS take time and are counted."""

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from msgspec import Struct

from cloudpar_master.adapters.aws.backend import POLICY
from cloudpar_master.adapters.aws.compression import compress, pack
from cloudpar_master.adapters.aws.result_pages import ROW_BYTES
from cloudpar_master.ports.fleet import Fleet, StandingFleet
from cloudpar_master.services.backend import Backend
from cloudpar_master.services.dispatcher import Dispatcher
from cloudpar_master.services.fleet_keeper import FleetKeeper
from cloudpar_master.services.steps import finish
from cloudpar_master.services.timer import Timer
from cloudpar_protocol import codec
from cloudpar_protocol.errors import RequestError, Unavailable
from cloudpar_protocol.routes import Route
from simulation.schedule import Schedule
from support.backends import backend_on
from support.ids import CountedIds
from support.memory.stores import Data, over

from . import limits
from .meter import Meter, Partition
from .queue import ModelQueue

KB = 1024
READ_KB = 4
"""The kilobytes that one read unit of DynamoDB pays for, in a strongly consistent read."""

BATCH = 10
PURE = {"get_link", "put_link", "limits", "offline", "network"}
"""The methods of ports that send no request to AWS: they only compute, or read the memory of their process."""

FOLDER = Path(tempfile.gettempdir()) / "cloudpar-aws-model"
"""The folder of the blob store. It stays unused, because task code and task data of the model are inline."""


class Deployment:
    """A deployment without its workers. Requests run in greenlets, so that they interleave at each request to AWS.

    Attributes:
        writes, reads: What throttles the writes, and the reads, of each package, by the package's id.
    """

    def __init__(
        self, schedule: Schedule, make_fleet: "Callable[[Deployment], Fleet]" = lambda _: StandingFleet()
    ) -> None:
        self.schedule = schedule
        self.meter = Meter(schedule)
        self.data = Data()
        self.ids = CountedIds()
        self.queue = ModelQueue(schedule)
        self.writes: defaultdict[str, Partition] = defaultdict(lambda: Partition(limits.PARTITION_WRITES))
        self.reads: defaultdict[str, Partition] = defaultdict(lambda: Partition(limits.PARTITION_READS))
        self.fleet = make_fleet(self)
        self._warm: list[Dispatcher] = []
        self._running = 0
        self._sizes: dict[str, tuple[int, int]] = {}
        timer = self._backend()
        self._timer, self._keeper = Timer(timer), FleetKeeper(timer)
        schedule.spawn(self._tick_each_minute, 60_000_000)

    @property
    def stores(self) -> Any:
        """The stored data, without delays."""
        return over(self.data, FOLDER, self.schedule, self.ids)._replace(queue=self.queue)

    def _backend(self) -> Backend:
        stores = self.stores
        ports: dict[str, Any] = {
            name: Port(self, name, getattr(stores, name)) for name in ("packages", "accounts", "queue", "registry")
        }
        return backend_on(stores._replace(**ports), self.schedule, POLICY, ids=self.ids)._replace(fleet=self.fleet)

    def head_bytes(self, package_id: str) -> int:
        """Return the size of a stored head as DynamoDB stores it."""
        stored = self.data.packages[package_id]
        version, size = self._sizes.get(package_id, (-1, 0))
        if version != stored.version:
            size = len(compress(stored.head))
            self._sizes[package_id] = stored.version, size
        return size

    def ask(self, token: str, route: Route[Any, Any], request: Struct) -> Any:
        """Send a request, and return its reply. The calling greenlet waits.

        Raises:
            RequestError: The master refuses the request.
        """
        self.schedule.sleep(limits.NETWORK.us)
        self.meter.add("requests")
        self._running += 1
        self.meter.most_functions = max(self.meter.most_functions, self._running)
        dispatcher = self._warm.pop() if self._warm else None
        try:
            if dispatcher is None:
                self.schedule.sleep(limits.COLD_START.us)
                dispatcher = Dispatcher(self._backend())
            self.schedule.sleep(limits.FUNCTION.us)
            admitted = dispatcher.admit(route.name, token, codec.encode(request), codec.MSGPACK)
            answer: Any = codec.encode(dispatcher.perform(admitted))
        finally:
            self._running -= 1
            if dispatcher is not None:
                self._warm.append(dispatcher)
        self.schedule.sleep(limits.NETWORK.us)
        return codec.decode(answer, route.reply)

    def _tick_each_minute(self) -> None:
        while True:
            try:
                self._keeper.tick()
                finish(self._timer.tick())
            except RequestError:
                pass  # the next minute's run repeats what was refused
            self.schedule.sleep(60_000_000)


class Port:
    """A port of one process: each call takes the time of its requests to AWS, and is counted."""

    def __init__(self, deployment: Deployment, name: str, port: Any) -> None:
        self._deployment = deployment
        self._name = name
        self._port = port

    def __getattr__(self, method: str) -> Any:
        function = getattr(self._port, method)
        if method in PURE:
            return function

        def call(*arguments: Any, **named: Any) -> Any:
            cost_us = self._cost_us(method, arguments)
            self._deployment.schedule.sleep(cost_us)
            answer = function(*arguments, **named)
            return list(answer) if isinstance(answer, Iterator) else answer

        setattr(self, method, call)
        return call

    def _cost_us(self, method: str, arguments: tuple[Any, ...]) -> int:
        """Count the requests of a call, and return how long they take together."""
        meter, size = self._deployment.meter, len(arguments[0]) if arguments and hasattr(arguments[0], "__len__") else 1
        if self._name == "queue":
            calls = ceil(size / BATCH) if method in {"send", "delete", "delete_unused", "extend"} else 1
            meter.add({"send": "queue sends", "receive": "queue receives"}.get(method, "queue others"), calls)
            each = {"send": limits.SEND, "receive": limits.RECEIVE}.get(method, limits.DELETE)
            return calls * each.us
        if self._name == "packages":
            return self._package_us(method, arguments)
        writes = method in {"reserve", "settle", "note", "beat", "create", "keep_key"}
        meter.add("table writes" if writes else "table reads")
        return (limits.WRITE if writes else limits.READ).us

    def _package_us(self, method: str, arguments: tuple[Any, ...]) -> int:
        deployment = self._deployment
        meter, packages = deployment.meter, deployment.data.packages
        if method == "save":
            head, _, *results = arguments
            stored = packages.get(head.package_id)
            # The saved head is about as large as the stored one.
            units = ceil(deployment.head_bytes(head.package_id) / KB) if stored else 1
            page_bytes = len(pack(results[0])) if results and results[0] else 0
            if page_bytes:
                is_object = page_bytes > ROW_BYTES
                units = 2 * (units + (1 if is_object else ceil(page_bytes / KB)))
                wait_us = self._write_us(head.package_id, units, limits.TRANSACTION)
                return wait_us + (limits.OBJECT.us if is_object else 0)
            return self._write_us(head.package_id, units, limits.WRITE)
        if method == "append":
            package_id, items, *born = arguments
            sizes = [len(pack(event)) for _, event in items]
            read_us = 0 if born else self._read_us([package_id])
            return read_us + sum(self._write_us(package_id, max(1, ceil(size / KB)), limits.WRITE) for size in sizes)
        if method in {"claim", "delete_events"}:
            rows = len(arguments[1]) if method == "delete_events" else 1
            return self._write_us(arguments[0], rows, limits.WRITE) if rows else 0
        if method == "create":
            meter.add("table writes", 8)
            return limits.TRANSACTION.us
        asked = arguments[0] if arguments else ()
        return self._read_us([asked] if isinstance(asked, str) else asked if isinstance(asked, list | tuple) else [])

    def _read_us(self, package_ids: Sequence[str]) -> int:
        """Count the reads of these packages' heads, and return how long they take."""
        deployment = self._deployment
        waits_us = 0
        for package_id in package_ids:
            if package_id in deployment.data.packages:
                units = ceil(deployment.head_bytes(package_id) / KB / READ_KB)
                deployment.meter.add(f"package reads {package_id}", units)
                waits_us = max(waits_us, self._wait_us(deployment.reads[package_id], units))
        return limits.READ.us + waits_us

    def _write_us(self, package_id: str, units: float, latency: limits.Latency) -> int:
        deployment = self._deployment
        deployment.meter.add("table writes", units)
        deployment.meter.add(f"package writes {package_id}", units)
        return latency.us + self._wait_us(deployment.writes[package_id], units)

    def _wait_us(self, partition: Partition, units: float) -> int:
        """Return how long a request waits for its partition, in microseconds.

        Raises:
            Unavailable: The request was throttled until boto3 gave up.
        """
        wait_us = partition.wait_us(units, self._deployment.schedule.now_us, limits.PATIENCE.us)
        if wait_us is None:
            self._deployment.schedule.sleep(limits.PATIENCE.us)
            raise Unavailable("DynamoDB throttles the package's rows")
        return wait_us
