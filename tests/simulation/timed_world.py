"""A master without faults in simulated time, and its workers."""

from collections.abc import Callable, Generator
from typing import Any

from cloudpar_master.services.steps import finish
from cloudpar_protocol import routes
from cloudpar_protocol.routes import Route
from cloudpar_protocol.worker_messages import RetrieveTasks
from support.timeline import Timeline
from support.world import World

from .worker import SimulatedWorker, Task

WAY_US = 1_000
"""How long a request or an answer travels between a worker and the master."""

Heard = Callable[[Any], object]
"""Takes the master's reply."""


class TimedWorld(Timeline):
    """The whole deployment. A subclass says how long tasks run, and when the master performs a held retrieval again."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def move(self, at_us: int) -> None:
        """See Timeline."""
        super().move(at_us)
        self.world.clock.time = self.now()

    def add_workers(self, *executors: int) -> None:
        """Start a worker for each of these numbers of executors."""
        for number, each in enumerate(executors):
            SimulatedWorker(
                f"w{number}", each, lambda: self.now_us, self.after, ask=self._ask, start=self.start_task
            )  # fmt: skip

    def start_task(self, task: Task) -> int:
        """Start a task, and return how long it will run."""
        raise NotImplementedError

    def hold(self, request: RetrieveTasks, until_us: int, heard: Heard) -> None:
        """Perform a retrieval when there is work for it, or at the end of its time."""
        raise NotImplementedError

    def reply(self, heard: Heard, reply: object) -> None:
        """Send a reply."""
        self.after(WAY_US, lambda: heard(reply))

    def _ask(self, route: Route[Any, Any], request: Any, heard: Heard) -> None:
        self.after(WAY_US, lambda: self._arrive(route, request, heard))

    def _arrive(self, route: Route[Any, Any], request: Any, heard: Heard) -> None:
        if route is routes.RETRIEVE_TASKS:
            self.hold(request, self.now_us + int(request.hold_s * 1e6), heard)
        else:
            reply = getattr(self.world.worker, route.name)(request)
            self.reply(heard, finish(reply) if isinstance(reply, Generator) else reply)
