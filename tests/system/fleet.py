"""Agents that a test starts, kills and replaces. The master knows each by the name of its process."""

import random
import re
import signal
from time import monotonic
from typing import Any, Self

from support.master_process import TOKENS
from support.running_agent import RunningAgent
from system.site import Site

NAMED = """
import os, sys, time
from cloudpar_worker import __main__
from cloudpar_worker.shell import agent, master_io
class Named(master_io.MasterIO):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.worker_id = f"agent {os.getpid()}"
        call = self._retrieval._channel.call
        def calling(*request):
            print("requests tasks at", time.monotonic(), file=sys.stderr, flush=True)
            return call(*request)
        self._retrieval._channel.call = calling
agent.MasterIO = Named
sys.exit(__main__.main())
"""
"""An agent whose name the test knows, and which prints when it requests tasks."""


class Member(RunningAgent):
    """An agent; `signalled_s` is the time of the signal that ended it."""

    def __init__(self, site: Site, **settings: Any) -> None:
        super().__init__(
            site.endpoint, token=TOKENS["worker_token"], command=("-c", NAMED, "--stdin"),
            **settings,
        )  # fmt: skip
        self.worker_id = f"agent {self.process.pid}"
        self.signalled_s: float | None = None

    @property
    def asked_s(self) -> list[float]:
        """The times at which it has requested tasks so far."""
        return [float(found) for found in re.findall(r"^requests tasks at (\S+)$", self.log, re.MULTILINE)]

    def signal(self, number: int) -> None:
        self.signalled_s = monotonic()
        self.process.send_signal(number)


class Fleet:
    """A number of agents. A killed or draining agent is replaced."""

    def __init__(self, site: Site, workers: int, seed: int = 0, **settings: Any) -> None:
        self._site = site
        self._settings = settings
        self._chance = random.Random(seed)
        self.members: list[Member] = []
        self.former: list[Member] = []
        for _ in range(workers):
            self.start()
        for member in self.members:
            member.wait_until_ready()

    def start(self) -> Member:
        """Start another agent without waiting until it is ready."""
        self.members.append(Member(self._site, **self._settings))
        return self.members[-1]

    def lose(self, number: int = signal.SIGKILL) -> Member:
        """Send a signal that ends it to a randomly chosen agent."""
        member = self.members.pop(self._chance.randrange(len(self.members)))
        self.former.append(member)
        member.signal(number)
        return member

    @property
    def died_s(self) -> dict[str, float]:
        """The times of the signals that ended workers, by worker."""
        return {each.worker_id: each.signalled_s for each in self.former if each.signalled_s is not None}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members + self.former:
            member.close()
