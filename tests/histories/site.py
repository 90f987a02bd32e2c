"""The processes of a run: a master, workers and clients, behind a connection that loses answers."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Self
from zlib import crc32

import msgspec

from histories.client import Config
from histories.faulty_master import BUG, CLOCK, FAULTS, SLOW
from support.lossy import lossy_line
from support.master_process import TOKENS, Master
from support.running_agent import RunningAgent
from support.waiting import HANG_S

TESTS = Path(__file__).parents[1]
CLIENTS: Final = ["ann", "ann", "bob"]
"""The accounts of the clients. Two share an account, so that they see each other's packages."""
WORKERS, EXECUTORS = 2, 2
LEASE_S = 2.0
NOWHERE = "127.0.0.1:9"
"""An address where no process listens."""


class Site:
    """A master on its own data folder, which may be killed and started again, with its workers and clients.

    `bug` names a bug that the master has (histories.bugs).
    """

    def __init__(self, folder: Path, seed: str, bug: str = "") -> None:
        self.folder, self._seed = folder, seed
        self.set_clock(0)
        self._environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")])),
            FAULTS: str(folder),
            BUG: bug,
        }
        self._stack = ExitStack()
        self.master = self._start_master(0)
        self._line = self._stack.enter_context(lossy_line(self.master.endpoint, seed=crc32(seed.encode())))
        self.endpoint = self._line.endpoint
        self.agents = [self._start_agent() for _ in range(WORKERS)]
        self.clients: list[subprocess.Popen[bytes]] = []
        self._lives = 0

    @contextmanager
    def slow(self) -> Iterator[None]:
        """Slow down the master's disk until the end of the block."""
        (self.folder / SLOW).touch()
        try:
            yield
        finally:
            (self.folder / SLOW).unlink()

    def set_clock(self, ahead_s: float) -> None:
        """Set the clock of the master's machine, in seconds ahead of the real one."""
        written = self.folder / "next clock"
        written.write_text(str(ahead_s))
        written.replace(self.folder / CLOCK)  # at no moment is the file incomplete

    def _start_master(self, port: int) -> Master:
        return Master(
            self.folder / "data", "--port", str(port), stdin=True, settings={"lease_s": LEASE_S, "grace_s": 600},
            module="histories.faulty_master", environment=self._environment,
        )  # fmt: skip

    def _start_agent(self) -> RunningAgent:
        return RunningAgent(
            self.endpoint, executors=EXECUTORS, environment=self._environment, token=TOKENS["worker_token"]
        )

    def start_clients(self, tokens: dict[str, str], until_s: float) -> None:
        self._tokens, self._until_s = tokens, until_s
        self.clients = [self._start_client(number) for number in range(len(CLIENTS))]

    def _start_client(self, number: int) -> subprocess.Popen[bytes]:
        self._lives += 1
        account, name = CLIENTS[number], f"client {number} life {self._lives}"
        config = Config(
            self.endpoint, account, self._tokens[account], name, f"{self._seed} {name}", str(self.folder), self._until_s
        )
        command = [sys.executable, "-m", "histories.client"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env=self._environment)
        assert process.stdin is not None
        with process.stdin as stdin:
            stdin.write(msgspec.json.encode(config) + b"\n")
        return process

    def kill_master(self) -> None:
        """Kill the master, and start it again on the same port."""
        # Without this, the many connects to the port of an absent master could take this port for one of their own.
        target, self._line.target = self._line.target, NOWHERE
        self.master.kill()
        self.master = self._start_master(self.master.port)
        self._line.target = target

    def kill_agent(self, number: int) -> None:
        self.agents[number].close()
        self.agents[number] = self._start_agent()

    def kill_client(self, number: int) -> None:
        self.clients[number].kill()
        self.clients[number].wait()
        self.clients[number] = self._start_client(number)

    def end_clients(self) -> None:
        """Wait until the clients have ended by themselves."""
        codes = [client.wait(timeout=2 * HANG_S) for client in self.clients]
        assert not any(codes), codes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients:
            client.kill()
            client.wait()
        for agent in self.agents:
            agent.close()
        self.master.kill()
        self._stack.close()


@contextmanager
def paused(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Stop a process until the end of the block."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)
