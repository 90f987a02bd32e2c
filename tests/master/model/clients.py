"""Clients that start, await, cancel and acknowledge packages."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from msgspec.structs import replace

from cloudpar_protocol import ranges, routes
from cloudpar_protocol.client_messages import Acknowledge, AwaitTasks, CancelTasks, Cursor, StartTasks
from cloudpar_protocol.errors import IdempotencyConflict, InvalidToken, QuotaExhausted, RequestError
from cloudpar_protocol.payloads import InlineData, TaskCode

from .asking import which
from .passing import Passing
from .reference import Package
from .sides import ACCOUNTS, alike

CODE = TaskCode("0" * 64, b"code")


class Clients(Passing):
    """The clients of all accounts."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[StartTasks] = []

    @rule(account=st.sampled_from(sorted(ACCOUNTS)), tasks=st.integers(1, 12), chunksize=st.sampled_from([None, 1, 4]))
    def start(self, account: str, tasks: int, chunksize: int | None) -> None:
        if len(self.order) == 6:
            return
        request = StartTasks(
            idempotency_key=f"key {next(self.names)}", session=account, n=tasks, code=CODE,
            data=InlineData([b"data"] * tasks), python="3.11", chunksize=chunksize,
        )  # fmt: skip
        self.start_with(account, request)
        self.pass_time(1.0)

    def start_with(self, account: str, request: StartTasks) -> None:
        """Start a package. The same key once more is the same package, or a conflict."""
        head_of = {self.reference.packages[package_id].body: package_id for package_id in self.order}
        side = self.sides[0]
        reply = side.ask(account, routes.START_TASKS, request)
        others = [other.ask(account, routes.START_TASKS, request) for other in self.sides[1:]]
        assert all(alike(other) == alike(reply) for other in others)
        if isinstance(reply, RequestError):
            assert isinstance(reply, QuotaExhausted | InvalidToken | IdempotencyConflict)
            assert isinstance(reply, InvalidToken) == (account in self.revoked)
            return
        key = account, request.idempotency_key
        if key in head_of:
            assert reply.package_id == head_of[key]
        else:
            self.reference.packages[reply.package_id] = Package(account=account, tasks=request.n, body=key)
            self.order.append(reply.package_id)
            self.bodies.append(request)
        self.look()

    @precondition(lambda self: self.order)
    @rule(which=which, other=st.booleans())
    def start_again(self, which: int, other: bool) -> None:
        number = which % len(self.order)
        package = self.reference.packages[self.order[number]]
        if self.sides[0].stores.packages.load(self.order[number]) is None:
            return  # the package is forgotten: the key would start another one
        request = replace(self.bodies[number], name="another" if other else "")
        reply = self.ask(package.account, routes.START_TASKS, request)
        if package.account in self.revoked:
            assert isinstance(reply, InvalidToken)
        elif not package.gone:
            assert isinstance(reply, IdempotencyConflict) if other else reply.package_id == self.order[number]

    @precondition(lambda self: self.order)
    @rule(which=which)
    def await_(self, which: int) -> None:
        package_id = self.order[which % len(self.order)]
        package = self.reference.packages[package_id]
        request = AwaitTasks(packages=[Cursor(package_id=package_id, cursor=package.cursor)])
        reply = self.ask(package.account, routes.AWAIT_TASKS, request)
        if package.account in self.revoked:
            assert isinstance(reply, InvalidToken)
        elif package_id in reply.missing:
            assert package.gone
        else:
            (status,) = reply.packages
            self.read(package, status)

    def read(self, package: Package, status: Any) -> None:
        if status.state == "expired":
            package.gone = True
            return
        results = {result.index: result.duration_us for result in status.results}
        expected = list(package.committed.items())[package.read : package.read + len(results)]
        assert len(results) == len(status.results)
        assert results == dict(expected)
        package.read += len(results)
        package.cursor = status.cursor
        assert status.more or package.read == len(package.committed)
        assert (status.state == "running") == (not package.ended)

    @precondition(lambda self: self.order)
    @rule(which=which, how=st.sampled_from(["all", "some", "queued"]), start=st.integers(0, 11), size=st.integers(1, 4))
    def cancel(self, which: int, how: str, start: int, size: int) -> None:
        package_id = self.order[which % len(self.order)]
        package = self.reference.packages[package_id]
        some = [(start, start + size)] if how == "some" else None
        request = CancelTasks(package_id=package_id, ranges=some, only_queued=how == "queued")
        before = package.ended
        reply = self.ask(package.account, routes.CANCEL_TASKS, request)
        if isinstance(reply, RequestError):
            assert package.account in self.revoked or package.gone
        elif how == "all" and not before:
            assert package.ended == "cancelled"
            assert reply.state == "cancelled"
        elif how == "some" and not before:
            left = [index for index in range(start, min(start + size, package.tasks)) if index not in package.committed]
            assert ranges.of(left) == reply.cancelled

    @precondition(lambda self: self.order)
    @rule(which=which)
    def acknowledge(self, which: int) -> None:
        package_id = self.order[which % len(self.order)]
        package = self.reference.packages[package_id]
        reply = self.ask(package.account, routes.ACKNOWLEDGE, Acknowledge(package_ids=[package_id]))
        if package.account in self.revoked:
            assert isinstance(reply, InvalidToken)
        else:
            package.gone = True
            assert package.ended
