"""An impostor takes the master's port at each moment of a restart: it gets no token from any client."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cloudpar import Pool
from cloudpar_protocol import codec
from cloudpar_protocol.proofs import Prove
from support.command import cloudpar, cloudpar_json, environment
from support.master_process import Master, connection_of
from support.scale import Scale
from support.task_functions import mark_and_wait
from support.up import worker
from support.waiting import HANG_S, await_file, until
from system.impostor import Impostor, is_challenge, traces

ROOT = Path(__file__).parents[2]
TSX = str(ROOT / "node_modules/.bin/tsx")
STEADY = str(ROOT / "sdk/typescript/tests/integration/steady-client.ts")
FETCH = b"\r\nsec-fetch-mode:"
"""A header of each request of JavaScript's `fetch`, and of no other request here."""

LARGE_BYTES = 32 << 20
TRIES = 2
"""How many challenges of each token the impostor answers before the master comes back."""

ROLES = ("token", "worker_token", "admin_token", "javascript")


def large(_: int) -> bytes:
    """Return a result that the worker uploads."""
    return b"x" * LARGE_BYTES


class Client:
    """A Python client, and what it does when the master is killed."""

    def __init__(self, pool: Pool, folder: Path, threads: ThreadPoolExecutor) -> None:
        self.pool = pool
        self._folder = folder
        self._threads = threads
        self._number = count()
        self.moments = (self.idle, self.long_poll, self.upload, self.upload_of_results)

    def start(self, function: Callable[[Any], Any], *values: Any) -> "Future[list[Any]]":
        """Map in a thread."""
        return self._threads.submit(lambda: list(self.pool.map(function, values)))

    def idle(self) -> Callable[[], None]:
        """Have nothing to do, so that only the worker holds a request."""
        assert self.start(abs, -1).result(HANG_S) == [1]
        return lambda: None

    def long_poll(self) -> Callable[[], None]:
        """Await a running task."""
        number = next(self._number)
        running, gate = self._folder / f"running {number}", self._folder / f"gate {number}"
        started = self.start(mark_and_wait, (str(running), str(gate)))
        await_file(running)

        def finish() -> None:
            gate.touch()
            assert started.result(HANG_S) == ["done"]

        return finish

    def upload(self) -> Callable[[], None]:
        """Upload the data of a task."""
        return self._transfer(self.start(len, b"x" * LARGE_BYTES), [LARGE_BYTES])

    def upload_of_results(self) -> Callable[[], None]:
        """Let the worker upload a result."""
        return self._transfer(self.start(large, 0), [b"x" * LARGE_BYTES])

    def _transfer(self, started: "Future[list[Any]]", wanted: list[Any]) -> Callable[[], None]:
        blobs = self._folder / "data/blobs"
        until(lambda: started.done() or any(path.stat().st_size for path in _existing(blobs)))

        def finish() -> None:
            assert started.result(HANG_S) == wanted

        return finish


def _existing(blobs: Path) -> Iterator[Path]:
    """Yield the files into which the master is writing uploads."""
    return (path for path in blobs.glob(".upload-*") if path.exists())


class JavaScript:
    """A client in JavaScript that maps all the time."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.lines: list[str] = []
        self._process = process
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            self.lines.extend(lines)

    def end(self) -> None:
        """End the client, and read all of its output."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(HANG_S)
        self._thread.join()

    def until_mapped(self) -> None:
        """Wait for the end of a map that has not ended yet, and for the next one."""
        wanted = len(self.lines) + 2
        until(lambda: len(self.lines) >= wanted or self._process.poll() is not None)
        assert self._process.poll() is None


@contextmanager
def javascript(endpoint: str, token: str) -> Iterator[JavaScript]:
    """Start a client in JavaScript."""
    process = subprocess.Popen(
        [TSX, STEADY], env=environment(CLOUDPAR_ENDPOINT=endpoint, CLOUDPAR_TOKEN=token),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    client = JavaScript(process)
    try:
        yield client
    finally:
        client.end()


def commands(endpoint: str, tokens: dict[str, str]) -> list[Callable[[], "subprocess.CompletedProcess[str]"]]:
    """Return commands of each role: new processes, to which the master has not proved itself."""
    at = ["--endpoint", endpoint]
    return [
        partial(cloudpar, "packages", "list", *at, "--token", tokens["token"]),
        partial(cloudpar, "account", "list", *at, "--admin-token", tokens["admin_token"]),
        partial(cloudpar, "worker", "--executors", "1", *at, CLOUDPAR_WORKER_TOKEN=tokens["worker_token"]),
        partial(cloudpar, "doctor", *at, "--token", tokens["token"]),
    ]


def check(impostor: Impostor, tokens: dict[str, str]) -> int:
    """Check what an impostor has heard; return how many bytes that were."""
    forbidden = traces(tokens.values())
    for heard in impostor.heard:
        assert not any(trace in heard for trace in forbidden)
    for request in impostor.received:
        if is_challenge(request):
            head, _, body = request.partition(b"\r\n\r\n")
            assert b"authorization" not in head.lower()
            media = codec.JSON if b"application/json" in head else codec.MSGPACK
            assert codec.decode(body, Prove, media).key
        else:  # `fetch` hides its connections: see docs/threat-model.md
            assert FETCH in request.lower()
    return sum(map(len, impostor.heard))


def replay(master: Master, impostor: Impostor) -> None:
    """Send what an impostor got from JavaScript to the restarted master: no credential in it is good there."""
    for request in impostor.received:
        if b"\r\nauthorization: cloudpar " in request.lower():
            assert master.speak(request).startswith(b"HTTP/1.1 401 ")


def test_g25_impostors_at_each_moment_of_a_restart_get_no_token(
    tmp_path: Path, scale: Scale, reached: Callable[..., None]
) -> None:
    restarts, folder, heard = scale(4, 200), tmp_path / "data", 0
    with ExitStack() as stack:
        master = Master(folder, "--port", "0")
        # The last master ends last: the pool tells it at its end that all was read.
        stack.callback(lambda: master.__exit__(None, None, None))
        connection, endpoint, port = connection_of(folder), master.endpoint, master.port
        admin = ["--endpoint", endpoint, "--admin-token", connection["admin_token"]]
        made = cloudpar_json("account", "create", "javascript", "--hours", "100", *admin)
        tokens = {name: connection[name] for name in ROLES[:3]} | {"javascript": made["token"]}
        site: Any = SimpleNamespace(endpoint=endpoint, connection=connection)
        stack.enter_context(worker(site, 2))
        script = stack.enter_context(javascript(endpoint, tokens["javascript"]))
        threads = stack.enter_context(ThreadPoolExecutor())
        # If the test fails, the pool ends before the threads that wait for its maps.
        pool = stack.enter_context(Pool(endpoint, tokens["token"], progress=False))
        client = Client(pool, tmp_path, threads)
        for number in range(restarts):
            script.until_mapped()
            finish = client.moments[number % len(client.moments)]()
            master.kill()
            with Impostor(port) as impostor:
                later = client.start(abs, -2)
                refused = commands(endpoint, tokens)[number // len(client.moments) % 4 if scale.full else number]()
                assert refused.returncode != 0
                waiting = [tokens[name] for name in ROLES if name != "admin_token"]
                until(lambda: all(impostor.has_tried(token, TRIES) for token in waiting))  # noqa: B023 - it is called before the next round
            heard += check(impostor, tokens)
            master = Master(folder, "--port", str(port))
            replay(master, impostor)
            assert later.result(HANG_S) == [2]
            finish()
    reached("{restarts} restarts at 4 moments, {heard} bytes heard: no part of a token", restarts=restarts, heard=heard)
