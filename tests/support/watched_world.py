"""A master whose ports note their calls."""

from collections.abc import Callable
from typing import Any, cast

from support.world import World


class Watched:
    """A port that notes its calls. `instead` replaces some of them."""

    def __init__(self, name: str, port: object, calls: list[str]) -> None:
        self._name = name
        self._port = port
        self._calls = calls
        self.instead: dict[str, Callable[..., Any]] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            self._calls.append(f"{self._name}.{name}")
            done = self.instead.get(name) or getattr(self._port, name)
            return done(*args, **more)

        return call


class WatchedWorld(World):
    """A world whose ports note their calls. `ports` are by their names in Backend."""

    def __init__(self, world: World) -> None:
        self.calls: list[str] = []
        names = ("packages", "accounts", "queue", "blobs")
        self.ports = {name: Watched(name, getattr(world.backend, name), self.calls) for name in names}
        super().__init__(world.backend._replace(**cast("dict[str, Any]", self.ports)), world.clock)
        self.numbers = world.numbers
