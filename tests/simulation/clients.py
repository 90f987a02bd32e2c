"""Clients, which start a package, read it to its end, cancel it, acknowledge it, or vanish."""

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import GrantQuota, RevokeAccount
from cloudpar_protocol.client_messages import (
    Acknowledge,
    AwaitTasks,
    CancelTasks,
    CancelTasksReply,
    Cursor,
    PackageStatus,
    StartTasks,
)
from cloudpar_protocol.errors import BadRequest, Gone, InvalidToken, NotFound, QuotaExhausted
from cloudpar_protocol.payloads import InlineData, Range, TaskCode
from support.backends import ADMIN_TOKEN

from .worker import PYTHON

if TYPE_CHECKING:
    from .system import System

CODE = TaskCode("0" * 64, b"code")


class Client:
    """A client that starts one package.

    Attributes:
        seen: The durations of the results that it has read, by task.
        finished: It sends no further request, except maybe a cancel.
    """

    def __init__(self, system: "System", name: str, token: str, tasks: int) -> None:
        self.name = name
        self.package_id = ""
        self.seen: dict[int, int] = {}
        self.finished = False
        self._system = system
        self._token = token
        self._tasks = tasks
        random = system.random
        self._vanishes_us = random.choice([None, None, random.randrange(8_000_000)])
        self._cancels_us = random.choice([None, None, random.randrange(8_000_000)])
        self._acknowledges = random.random() < 0.7
        system.schedule.spawn(self._live, random.randrange(5_000_000))

    def _live(self) -> None:
        self._use()
        self.finished = True

    def _use(self) -> None:
        system = self._system
        request = StartTasks(
            idempotency_key=self.name, n=self._tasks, code=CODE, data=InlineData([b"data"] * self._tasks),
            python=PYTHON, chunksize=system.random.choice([None, None, 1, 3]),
        )  # fmt: skip
        try:
            self.package_id = system.network.ask(self.name, self._token, routes.START_TASKS, request).package_id
            system.books.confirm_start(self.package_id)
            if self._cancels_us is not None:
                system.schedule.spawn(self._cancel, self._cancels_us)
            self._read()
        except (QuotaExhausted, InvalidToken) as error:
            system.books.say(f"{self.name} gives up: {error}")

    def _read(self) -> None:
        """Read the package to its end, and until the charge is final."""
        system, cursor = self._system, 0
        gone_us = None if self._vanishes_us is None else system.schedule.now_us + self._vanishes_us
        while gone_us is None or system.schedule.now_us < gone_us:
            request = AwaitTasks(packages=[Cursor(package_id=self.package_id, cursor=cursor)])
            reply = system.network.ask(self.name, self._token, routes.AWAIT_TASKS, request)
            if reply.missing:
                raise AssertionError(f"{self.name}: {reply.missing}")
            (status,) = reply.packages
            cursor = self._take(status)
            if status.settled and not status.more:
                system.books.read_to_the_end(self, status)
                if self._acknowledges:
                    acknowledge = Acknowledge(package_ids=[self.package_id])
                    system.network.ask(self.name, self._token, routes.ACKNOWLEDGE, acknowledge)
                return
            system.schedule.sleep(round(max(reply.retry_after_s, 0.05) * 1e6))
        system.books.say(f"{self.name} sends no more requests")

    def _take(self, status: PackageStatus) -> int:
        for result in status.results:
            if result.index in self.seen:
                raise AssertionError(f"{self.name} reads task {result.index} of {self.package_id} twice")
            self.seen[result.index] = result.duration_us
        return status.cursor

    def _cancel(self) -> None:
        random = self._system.random
        start = random.randrange(self._tasks)
        some: list[Range] = [(start, random.randint(start + 1, self._tasks))]
        request = random.choice([
            CancelTasks(package_id=self.package_id),
            CancelTasks(package_id=self.package_id, ranges=some),
            CancelTasks(package_id=self.package_id, only_queued=True),
        ])  # fmt: skip
        try:
            reply: CancelTasksReply = self._system.network.ask(self.name, self._token, routes.CANCEL_TASKS, request)
        except (BadRequest, NotFound, InvalidToken) as error:
            self._system.books.say(f"{self.name}: {error}")
        else:
            self._system.books.confirm_cancel(self.package_id, reply)


class Operator:
    """An operator, who grants, and now and then revokes."""

    def __init__(self, system: "System", account_ids: list[str]) -> None:
        self._system = system
        for account_id in account_ids:
            if system.random.random() < 0.3:
                system.schedule.spawn(partial(self._grant, account_id), self._sometime())
            if system.random.random() < 0.1:
                system.schedule.spawn(partial(self._revoke, account_id), self._sometime())

    def _sometime(self) -> int:
        return self._system.random.randrange(10_000_000)

    def _grant(self, account_id: str) -> None:
        amount_us = self._system.random.choice([100_000, -100_000])
        request = GrantQuota(idempotency_key=f"grant {account_id}", account_id=account_id, quota_us=amount_us)
        with suppress(Gone):  # revoked already
            self._system.network.ask("operator", ADMIN_TOKEN, routes.GRANT_QUOTA, request)

    def _revoke(self, account_id: str) -> None:
        request = RevokeAccount(account_id=account_id)
        self._system.network.ask("operator", ADMIN_TOKEN, routes.REVOKE_ACCOUNT, request)
