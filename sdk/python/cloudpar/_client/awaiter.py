"""The thread that asks the master for news of unfinished packages. One request names up to BULK_ITEMS packages."""

import logging
import threading
import time
from collections.abc import Iterator

from cloudpar._formatting.notices import AFTER_S
from cloudpar.errors import CloudparError, NotFound
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import AwaitTasks, AwaitTasksReply, Cursor, PackageStatus
from cloudpar_protocol.limits import BULK_ITEMS, HOLD_S
from cloudpar_protocol.transport.interruption import Interruption
from cloudpar_protocol.transport.retries import Stopped

from .connection import Connection, Interrupted
from .downloads import Downloads
from .nesting import Nesting
from .pacing import gather_s
from .package_handle import PackageHandle
from .storage_watch import StorageWatch

NEW_PACKAGE_S = 0.1
"""The longest time that the thread waits before it asks about a new package, in seconds. If the master holds requests,
the thread asks at once. The thread assumes that the master holds requests if the last answer to a request with `hold_s`
above 0 named no delay (`retry_after_s`).
"""

RESTLESS_S = 0.05
"""The shortest pause after an answer without news, in seconds. It applies if the master was not allowed to hold the
request, and while a package is starting. It also applies if several answers in a row came within RESTLESS_S, although
the master was allowed to hold the requests.
"""

log = logging.getLogger("cloudpar")


class Awaiter:
    """Asks the master for news while there is an unfinished package, and sleeps otherwise."""

    def __init__(
        self, connection: Connection, downloads: Downloads, session: str, nesting: Nesting, storage: StorageWatch
    ) -> None:
        self._connection = connection
        self._downloads = downloads
        self._session = session
        self._nesting = nesting
        self._storage = storage
        self._condition = threading.Condition()
        self._under_way: dict[PackageHandle, None] = {}  # several handles may belong to the same package
        self._starting = 0
        self._due_at = 0.0
        self._retry_after_s = 0.0
        self._restless = 0
        self._interruption = Interruption()
        self._closed = False
        self._thread: threading.Thread | None = None

    def get_ready(self) -> None:
        """Start the thread if it does not run, so that the first package need not wait for the thread's start.

        Raises:
            RuntimeError: The thread cannot be started.
        """
        with self._condition:
            if self._thread is None and not self._closed:
                thread = threading.Thread(target=self._run, name="cloudpar-await", daemon=True)
                thread.start()
                self._thread = thread

    def start_requested(self) -> None:
        """Record that a package is about to start.

        Until the start has ended, the thread sends no request that the master may hold. Such a request would not name
        the new package, so news of this package would come late.
        """
        with self._condition:
            self._starting += 1

    def start_done(self, handle: PackageHandle | None) -> None:
        """Record that the start of a package has ended; `handle` is None if the package could not start."""
        with self._condition:
            self._starting -= 1
            if handle is not None:
                self._add(handle)
            self._condition.notify()

    def add(self, handle: PackageHandle) -> None:
        """From now on, also request news of this package, to which the pool has attached."""
        self._nesting.wait_started(handle)
        with self._condition:
            self._add(handle)
            # The master answers a held request early when the same session starts a package, but the master does not
            # know that a session attaches to a package. Without the interruption the thread would ask about this
            # package only after the held request has ended.
            self._interruption.interrupt()
            self._condition.notify()

    def _add(self, handle: PackageHandle) -> None:
        self._under_way[handle] = None
        self._due_at = min(self._due_at, time.monotonic() + (NEW_PACKAGE_S if self._retry_after_s else 0.0))

    def drop(self, handle: PackageHandle) -> None:
        """Stop requesting news of a package. The package itself continues."""
        with self._condition:
            self._under_way.pop(handle, None)
        self._nesting.wait_ended(handle)

    def under_way(self) -> list[PackageHandle]:
        """Return the packages about which the thread asks the master."""
        with self._condition:
            return list(self._under_way)

    def close(self) -> None:
        """End the thread. The caller must first close the connection, which ends the request that is under way."""
        with self._condition:
            self._closed = True
            self._condition.notify()
        for handle in self.under_way():
            self._nesting.wait_ended(handle)

    def _run(self) -> None:
        try:
            self._ask_on()
        except Stopped:
            return
        except BaseException as error:
            log.exception("cloudpar: results cannot be received any more")
            failure = CloudparError(f"an error in the pool itself: {error!r}")
            failure.__cause__ = error
            for each in self.under_way():
                each.lost(failure)

    def _ask_on(self) -> None:
        while (question := self._next()) is not None:
            requested, hold_s = question
            cursors = [Cursor(package_id=each.id, cursor=each.package.cursor) for each in requested]
            message = AwaitTasks(session=self._session, packages=cursors, hold_s=hold_s, unwritable=True)
            requested_at = time.monotonic()
            try:
                reply = self._connection.call(
                    routes.AWAIT_TASKS, message, hold_s=hold_s, interruption=self._interruption
                )
            except Interrupted:
                continue  # the next request also names the added package, and repeats these cursors, so no news is lost
            except CloudparError as error:
                for each in requested:
                    each.lost(error)
            else:
                news = self._read(reply, requested)
                self._watch_storage(reply, news=news)
                held_s = time.monotonic() - requested_at if hold_s else None
                self._pause(reply, requested, news, held_s)
            self._sort_out(requested)

    def _next(self) -> tuple[list[PackageHandle], float] | None:
        with self._condition:
            while not self._closed:
                wait_s = self._due_at - time.monotonic()
                if self._under_way and wait_s <= 0:
                    return self._question()
                self._condition.wait(wait_s if self._under_way else None)
            return None

    def _question(self) -> tuple[list[PackageHandle], float]:
        self._interruption = Interruption()
        requested = list(self._under_way)[:BULK_ITEMS]
        whole = len(requested) == len(self._under_way)
        for each in [] if whole else requested:  # move to the end: the others come first next time
            self._under_way[each] = self._under_way.pop(each)
        hold_s = self._hold_s(requested) if whole and not self._starting else 0.0
        hold_s = min(hold_s, self._storage.due_s())
        return requested, hold_s

    @staticmethod
    def _hold_s(requested: list[PackageHandle]) -> float:
        """Return how long the master may hold the request, in seconds.

        The master must not hold the request if more results of a package are ready. If no executor has worked for a
        package yet, the request must end by the time at which the pool tells the user why no task runs.
        """
        if any(each.package.more for each in requested):
            return 0.0
        lonely = [each.started_at for each in requested if not each.executors]
        left_s = [started_at + AFTER_S - time.monotonic() for started_at in lonely]
        return min([HOLD_S, *(each for each in left_s if each > 0)])

    def _read(self, reply: AwaitTasksReply, requested: list[PackageHandle]) -> bool:
        any_news = bool(reply.missing)
        for handle, status in _matched(requested, reply.packages):
            any_news |= bool(status.results) or status.state != "running"
            page = handle.package.cursor
            handle.fleet = reply.fleet
            news = handle.take(status)
            if news.fetches:
                self._downloads.begin(handle, news, page)
        for handle in requested:
            if handle.id in reply.missing:
                handle.lost(NotFound(f"package {handle.id}: {reply.missing[handle.id]}"))
        return any_news

    def _watch_storage(self, reply: AwaitTasksReply, *, news: bool) -> None:
        failure = self._storage.heard(reply.unwritable, news=news)
        if failure is not None:
            for each in self.under_way():
                each.lost(failure)
                self.drop(each)

    def _pause(self, reply: AwaitTasksReply, requested: list[PackageHandle], news: bool, held_s: float | None) -> None:
        """Set the time of the next request."""
        now = time.monotonic()
        with self._condition:
            # Even a master that holds requests names a delay in its answer to a request that it must not hold. So only
            # the answers to other requests show whether the master holds requests.
            if held_s is not None:
                self._retry_after_s = reply.retry_after_s
            running = [each for each in self._under_way if each.package.phase == "running"]
            if any(each.package.more for each in running):
                pause_s = 0.0
            elif news:
                pauses_s = [gather_s(each.package.progress, now - each.started_at) for each in running]
                pause_s = min(pauses_s, default=0.0)
            else:
                self._restless = self._restless + 1 if held_s is not None and held_s < RESTLESS_S else 0
                restless = self._starting or self._restless > 3 or held_s is None
                pause_s = max(reply.retry_after_s, RESTLESS_S if restless else 0.0)
            if any(each not in requested for each in running):
                pause_s = min(pause_s, NEW_PACKAGE_S if self._retry_after_s else 0.0)
            self._due_at = now + min(pause_s, self._storage.due_s())

    def _sort_out(self, requested: list[PackageHandle]) -> None:
        """Stop requesting news of packages that have ended, even if large results are still being downloaded."""
        for each in requested:
            package = each.package
            if package.phase == "ended" or (package.state != "running" and not package.more):
                self.drop(each)


def _matched(
    requested: list[PackageHandle], statuses: list[PackageStatus]
) -> Iterator[tuple[PackageHandle, PackageStatus]]:
    """Pair each status with its package. Statuses are in the order of the request; some packages have no status."""
    rest = iter(requested)
    for status in statuses:
        for handle in rest:
            if handle.id == status.package_id:
                yield handle, status
                break
