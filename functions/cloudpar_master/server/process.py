"""The master's process: it serves a socket, does the timer's work, and ends with its parent."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
import uvloop

from cloudpar_master.services.steps import Steps

from .account_shares import Shares, allow_most_files, most_connections
from .assembly import Assembly
from .connections import GuardedConnection, Strangers
from .local_calls import LocalCalls
from .small_reads import SmallReads

T = TypeVar("T")

ACCEPTED = 16
"""How many new connections one turn of the event loop accepts at most. The loop accepts one for each descriptor of the
listening socket. With a single descriptor, strangers who connect again and again would fill the socket's queue, and the
kernel would refuse the connections of others for many seconds."""
TICK_S = 1.0
TICKS = 6
"""A tick does the timer's work once. There are at least this many ticks in the lease time, and each worker sends a beat
in each third of the lease time. So after the end of a dead worker's lease, the chunk waits for at most half the time
between two beats."""
SWEEP_S = 3600.0
BUSY = 50
"""If a tick handled at least this many packages and lost chunks, the next tick follows at once."""


class MasterServer(uvicorn.Server):
    """A uvicorn server that calls `ready` when it listens, and answers held requests when it ends.

    SIGTERM or SIGINT ends it, and the process then exits with code 0.
    """

    def __init__(self, assembly: Assembly, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                assembly.app,
                log_config=None,
                log_level="error",  # one line for each malformed request would let any client fill the log
                access_log=False,
                lifespan="off",
                server_header=False,
                proxy_headers=False,  # nothing here depends on the client's address
                ws="none",
                timeout_keep_alive=75,
                timeout_graceful_shutdown=1,
                http=partial(_connection, Strangers(), Shares(most_connections())),  # type: ignore[arg-type]  # it is called
            )
        )
        self._long_polling = assembly.long_polling
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and call `ready`."""
        await super().startup(sockets)
        self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let SIGTERM and SIGINT call `end`.

        Uvicorn would raise the signal again after the end, and the master's exit code would not be 0.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.end)
        yield

    def end(self) -> None:
        """Answer all held requests, hold no further ones, and let `serve` return."""
        self.should_exit = True
        self._long_polling.end()

    def follow(self, stdin: int) -> None:
        """Read standard input. If it is closed, the parent has ended or wants the master to end, so call `end`."""
        with contextlib.suppress(BlockingIOError):
            if not os.read(stdin, 65536):
                asyncio.get_running_loop().remove_reader(stdin)
                self.end()


def run(
    assembly: Assembly,
    listening: socket.socket,
    ready: Callable[[], None],
    stdin: int | None = None,
    local: Path | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT comes.

    Args:
        assembly: The master.
        listening: The socket for HTTP.
        ready: Called when the master listens.
        stdin: A descriptor that the parent holds open, so that the master also ends with its parent; or None.
        local: The path of the socket for the calls of the pool that has started this master; or None.
    """
    allow_most_files()
    uvloop.run(_serve(assembly, listening, ready, stdin, local))


def _connection(strangers: Strangers, shares: Shares, **uvicorns: Any) -> SmallReads:
    return SmallReads(GuardedConnection(strangers, shares, **uvicorns))


async def _serve(
    assembly: Assembly,
    listening: socket.socket,
    ready: Callable[[], None],
    stdin: int | None,
    local: Path | None,
) -> None:
    server, local_calls = MasterServer(assembly, ready), LocalCalls(assembly.app)
    if local is not None:
        await local_calls.listen(local)
    if stdin is not None:
        os.set_blocking(stdin, False)
        asyncio.get_running_loop().add_reader(stdin, server.follow, stdin)
    parent = os.getppid() if stdin is not None else None
    loops = _tick(assembly, server, parent), _keep_time(assembly), _trim(assembly), _sweep(assembly)
    clockwork = [asyncio.ensure_future(loop) for loop in loops]
    try:
        await server.serve(sockets=descriptors(listening))
        await local_calls.close()
    finally:
        for task in clockwork:
            task.cancel()
        _try_clock(assembly, assembly.clock.save)
        assembly.database.close()


def descriptors(listening: socket.socket) -> list[socket.socket]:
    """Return ACCEPTED descriptors of a listening socket."""
    return [listening, *(listening.dup() for _ in range(ACCEPTED - 1))]


async def _tick(assembly: Assembly, server: MasterServer, parent: int | None) -> None:
    while True:
        if parent not in {None, os.getppid()}:
            server.end()
        try:
            done = await _pausing(assembly.tick())
        except Exception as error:  # noqa: BLE001 - one package that fails must not stop the timer for the others
            assembly.failures.note(error, "a tick failed; the next one follows")
            done = 0
        await asyncio.sleep(0 if done >= BUSY else min(TICK_S, assembly.lease_s / TICKS))


async def _keep_time(assembly: Assembly) -> None:
    while True:
        _try_clock(assembly, assembly.clock.check)
        await asyncio.sleep(TICK_S)


def _try_clock(assembly: Assembly, call: Callable[[], None]) -> None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - for example, the disk is full: the master still serves requests
        assembly.failures.note(error, "the master's time cannot be saved; it is tried again")


async def _trim(assembly: Assembly) -> None:
    while True:
        await asyncio.sleep(TICK_S)
        await _step_by_step(assembly, assembly.blobs.trim(), "removing task code failed; it is tried again")


async def _sweep(assembly: Assembly) -> None:
    while True:
        await asyncio.sleep(SWEEP_S)
        sweep = assembly.blobs.sweep(assembly.blobs_kept_s)
        await _step_by_step(assembly, sweep, "removing unused blobs failed; it is tried again in an hour")


async def _pausing(steps: Steps[T]) -> T:
    """Do work in steps, serve requests between the steps, and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        await asyncio.sleep(0)


async def _step_by_step(assembly: Assembly, work: Iterator[None], failure: str) -> None:
    """Do work in steps, and serve requests between the steps. An error of the work is logged and not raised."""
    try:
        for _ in work:
            await asyncio.sleep(0)
    except Exception as error:  # noqa: BLE001 - such as an ExceptionGroup of a sweep, or an error of SQLite
        assembly.failures.note(error, failure)
