"""Downloads large results.

One request fetches results that are adjacent in a blob; several requests run in parallel.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from queue import SimpleQueue
from threading import Thread

from msgspec.structs import replace

from cloudpar.errors import CloudparError, RequestError
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import AwaitTasks, Cursor
from cloudpar_protocol.payloads import Link, TaskResult
from cloudpar_protocol.transport.retries import Stopped

from .connection import Connection
from .failures import package_error
from .package import News
from .package_handle import PackageHandle

SPAN_BYTES = 16 << 20
"""How many bytes of adjacent results one request fetches at most. A single larger result is fetched whole."""

THREADS = 4


def spans(results: Sequence[TaskResult]) -> Iterator[list[TaskResult]]:
    """Yield groups of results whose payloads are adjacent in one blob.

    A group of several results has at most SPAN_BYTES.
    """
    group: list[TaskResult] = []
    end: tuple[str, int] | None = None
    size = 0
    for result in sorted(results, key=_place):
        key, offset = _place(result)
        length = result.blob.size if result.blob else 0
        if group and ((key, offset) != end or size + length > SPAN_BYTES):
            yield group
            group, size = [], 0
        group.append(result)
        size += length
        end = key, offset + length
    if group:
        yield group


def _place(result: TaskResult) -> tuple[str, int]:
    return (result.blob.key, result.blob.offset) if result.blob else ("", 0)


class Downloads:
    """Fetches payloads in the background and passes them to the package that waits for them."""

    def __init__(self, connection: Connection, session: str) -> None:
        self._connection = connection
        self._session = session
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[Thread] = []

    def begin(self, handle: PackageHandle, news: News, page: int) -> None:
        """Start to download the payloads that a PackageStatus names. Only one thread may call this method.

        Args:
            handle: The package that gets the payloads.
            news: The news in the status.
            page: The cursor in the request that brought the status. If a link expires, a request with the same cursor
                brings a new link.
        """
        for span in spans(news.fetches):
            self._jobs.put(partial(self._fetch, handle, span, news.links, page))
            if len(self._threads) < THREADS:
                self._start_thread()

    def _start_thread(self) -> None:
        thread = Thread(target=self._run, name="cloudpar-download", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter is shutting down and starts no more threads
            if not self._threads:
                self._jobs.put(None)
                self._run()
        else:
            self._threads.append(thread)

    def _run(self) -> None:
        for job in iter(self._jobs.get, None):
            job()

    def _fetch(self, handle: PackageHandle, span: list[TaskResult], links: dict[str, Link], page: int) -> None:
        try:
            data = self._get(handle, span, links, page)
        except CloudparError as error:
            handle.lost(error)
        except Stopped:
            return
        else:
            handle.fetched(list(_cut(span, data)))

    def _get(
        self, handle: PackageHandle, span: list[TaskResult], links: dict[str, Link], page: int
    ) -> bytes | bytearray:
        key, start = _place(span[0])
        end = start + sum(result.blob.size for result in span if result.blob)
        if start == end:
            return b""
        try:
            return self._connection.get(links[key], start, end)
        except (RequestError, KeyError):  # the link may have expired, for example while this computer slept
            return self._connection.get(self._fresh_link(handle.id, page, key), start, end)

    def _fresh_link(self, package_id: str, page: int, key: str) -> Link:
        cursor = Cursor(package_id=package_id, cursor=page)
        message = AwaitTasks(session=f"{self._session}-link", packages=[cursor])
        reply = self._connection.call(routes.AWAIT_TASKS, message)
        for status in reply.packages:
            if key in status.links:
                return status.links[key]
            if status.state == "expired":
                raise package_error(status.state, status.reason, status.message)
        raise CloudparError(f"the master names no link for the results in {key}: {reply.missing.get(package_id, '')}")

    def close(self) -> None:
        """End the threads after all queued downloads. If the connection is closed, the downloads end at once."""
        for _ in range(THREADS):
            self._jobs.put(None)


def _cut(span: list[TaskResult], data: bytes | bytearray) -> Iterator[TaskResult]:
    if len(span) == 1:  # avoids a copy of a large payload
        yield replace(span[0], data=data)
        return
    position = 0
    for result in span:
        size = result.blob.size if result.blob else 0
        yield replace(result, data=data[position : position + size])
        position += size
