"""Whoever uses the services, in any order: what they answer is what the reference says, and the same on each side."""

from itertools import count
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import Struct
from msgspec.structs import replace

from cloudpar_master.core import ranges
from cloudpar_master.core.head import Head, Piece
from cloudpar_master.ports import Message
from cloudpar_master.services.deployment import hash_token
from cloudpar_master.services.folding import chunk_body
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import CreateAccount, GrantQuota, ListAccounts, RevokeAccount
from cloudpar_protocol.client_messages import (
    Acknowledge,
    AwaitTasks,
    CancelTasks,
    Cursor,
    ListPackages,
    PrepareUploads,
    StartTasks,
    Upload,
)
from cloudpar_protocol.errors import IdempotencyConflict, InvalidToken, QuotaExhausted, RequestError
from cloudpar_protocol.payloads import InlineData, TaskCode, TaskResult
from cloudpar_protocol.routes import Route
from cloudpar_protocol.worker_messages import (
    ExtendLeases,
    GiveBack,
    LeaseRef,
    PrepareResult,
    PrepareResults,
    Publication,
    PublishResults,
    RetrieveTasks,
    Return,
)
from master.stores import SetClock

from .reference import Package, Reference
from .sides import ACCOUNTS, ADMIN_TOKEN, PLENTY_US, POLICY, WORKER_TOKEN, Side, alike, wait_us

CODE = TaskCode("0" * 64, b"code")
DAY_S = 86_400.0
LAST_RECEIVE = 4
"""A chunk that surfaces after so many is dead: here it is lost by name, since queues differ in when they say it."""

REMEMBERED_S = 11.0
"""For so long an adapter may remember whose a token is."""

which = st.integers(0, 30)


class Tally:
    """What Hypothesis has done, which may be less than it was asked.

    Attributes:
        runs: Those of full length that came to their end, with all that holds there.
        steps: Theirs.
    """

    runs = 0
    steps = 0


class Services(RuleBasedStateMachine):
    """Everybody at once.

    Attributes:
        tally: Where a run is counted that has come to its end.
        length: A run has so many steps.
        open_sides: Makes the sides of a run.
        repeats: Whether every side's queue repeats an attempt.
        every: How often the sides' records are compared; their answers always are.
    """

    open_sides: ClassVar[Any]
    clock: ClassVar[SetClock]
    tally: ClassVar[Tally]
    length: ClassVar[int]
    repeats: ClassVar[bool] = True
    every: ClassVar[int] = 1

    def __init__(self) -> None:
        super().__init__()
        self.sides: list[Side] = self.open_sides()
        self.reference = Reference()
        self.names = count()
        self.order: list[str] = []
        self.bodies: list[StartTasks] = []
        self.seqs: dict[int, int] = {}
        self.left: dict[int, set[int]] = {}
        self.sent: list[tuple[int, list[TaskResult], int, bool]] = []
        self.revoked: set[str] = set()
        self.attempt: tuple[str, int] | None = None
        self.looks = 0
        self.steps = 0

    @invariant()
    def a_step_is_done(self) -> None:
        """Hypothesis looks at invariants after each rule, the one that begins included."""
        self.steps += 1

    # Asking.

    def ask(self, token: str, route: Route[Any, Any], request: Struct) -> Any:
        return self.ask_each(token, route, [request] * len(self.sides))

    def ask_each(self, token: str, route: Route[Any, Any], asked: list[Any]) -> Any:
        """Ask every side, in its own words for what only it knows; returns the first one's answer."""
        answers = [side.ask(token, route, request) for side, request in zip(self.sides, asked, strict=True)]
        first = alike(answers[0])
        for answer in answers[1:]:
            assert alike(answer) == first
        if route is routes.RETRIEVE_TASKS:
            for side, answer in zip(self.sides, answers, strict=True):
                side.leases += answer.leases
        self.look()
        return answers[0]

    def looked_at(self) -> list[Side]:
        """All sides, but now and then only where looking takes its time; the first one always."""
        self.looks += 1
        return self.sides if self.looks % self.every == 0 else self.sides[:1]

    def heads(self) -> list[Head]:
        """Every package as it is, equal on all sides."""
        sides = self.looked_at()
        heads = [[side.stores.packages.load(package_id) for package_id in self.order] for side in sides]
        for others in heads[1:]:
            assert others == heads[0]
        return [head for head in heads[0] if head is not None]

    def look(self) -> None:
        """Compare with the reference after every answer."""
        for head in self.heads():
            package = self.reference.packages[head.package_id]
            cancelled = {index for start, end in head.cancelled for index in range(start, end)}
            assert cancelled >= package.cancelled
            package.cancelled = cancelled
            if head.ended and not package.ended:
                self.ended(package, head)
            if not package.ended or package.ended == "completed":
                assert head.done == len(package.committed) + len(cancelled)
                assert head.used_us >= package.used_us
            if head.settled:
                said_us = sum(us for index, us in package.said_us.items() if index not in package.committed)
                assert head.charged_us <= head.used_us <= package.used_us + said_us

    def ended(self, package: Package, head: Head) -> None:
        package.ended = head.reason or head.state
        if package.ended == "completed":
            assert package.done
        elif package.ended == "quota":
            assert ACCOUNTS[package.account] < PLENTY_US
        else:
            assert package.ended in {"cancelled", "acknowledged", "revoked", "expired"}

    @invariant()
    def the_books_balance(self) -> None:
        records = [[side.stores.accounts.get(name) for name in ACCOUNTS] for side in self.looked_at()]
        assert all(others == records[0] for others in records[1:])
        heads = self.heads()
        for account in records[0]:
            assert account is not None
            assert account.spent_us + account.reserved_us <= account.granted_us
            theirs = [head for head in heads if head.account_id == account.account_id]
            if len(theirs) == sum(each.account == account.account_id for each in self.reference.packages.values()):
                assert account.spent_us == sum(head.charged_us for head in theirs if head.settled)
            if account.granted_us >= PLENTY_US // 2:
                for head in theirs:
                    assert not head.settled or head.charged_us == head.used_us

    # Clients.

    @initialize(tasks=st.integers(1, 12), chunksize=st.sampled_from([None, 1, 4]))
    def begin(self, tasks: int, chunksize: int | None) -> None:
        """There is something to do from the start."""
        for account in sorted(ACCOUNTS):
            self.start(account, tasks, chunksize)
        self.retrieve("w1", 2)

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
        """Once more with the same key is the same package, or a conflict."""
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
            return  # nobody remembers it: it would be another package
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

    def list_packages(self, account: str) -> None:
        reply = self.ask(account, routes.LIST_PACKAGES, ListPackages())
        if not isinstance(reply, RequestError):
            known = [
                package_id for package_id in reversed(self.order)
                if account in {ADMIN_TOKEN, self.reference.packages[package_id].account}
            ]  # fmt: skip
            found = [summary.package_id for summary in reply.packages]
            assert found == [package_id for package_id in known if package_id in found]

    def prepare_uploads(self, account: str, size: int) -> None:
        uploads = [Upload(kind="code", size=size, crc32=7, hash="1" * 64)]
        self.ask(account, routes.PREPARE_UPLOADS, PrepareUploads(uploads=uploads))

    # Workers.

    @rule(worker=st.sampled_from(["w1", "w2"]), chunks=st.integers(1, 3))
    def retrieve(self, worker: str, chunks: int) -> None:
        self.attempt = f"attempt-{next(self.names)}", chunks
        self.take(worker, *self.attempt)

    @precondition(lambda self: self.repeats and self.attempt)
    @rule()
    def retrieve_again(self) -> None:
        assert self.attempt is not None
        self.take("w1", *self.attempt)

    def take(self, worker: str, attempt_id: str, chunks: int) -> list[int]:
        first = len(self.sides[0].leases)
        request = RetrieveTasks(attempt_id=attempt_id, worker_id=worker, executors=2, chunks=chunks)
        leases = self.ask(WORKER_TOKEN, routes.RETRIEVE_TASKS, request).leases
        for number, lease in enumerate(leases, first):
            self.reference.lease(number, lease, self.clock.now())
            self.seqs[number] = 0
            self.left[number] = {index for start, end in lease.ranges for index in range(start, end)}
        return [first + number for number in range(len(leases))]

    def refs(self, number: int) -> list[dict[str, Any]]:
        """How each side knows a lease."""
        names = ("package_id", "lease_id", "receipt", "start", "end", "generation")
        return [{name: getattr(side.leases[number], name) for name in names} for side in self.sides]

    @precondition(lambda self: self.seqs)
    @rule(
        which=which, part=st.tuples(st.integers(0, 11), st.integers(0, 12)), closes=st.booleans(),
        outcome=st.sampled_from(["ok", "ok", "ok", "error", "cancelled"]), duration_us=st.integers(0, 9_000),
    )  # fmt: skip
    def publish(self, which: int, part: tuple[int, int], closes: bool, outcome: Any, duration_us: int) -> None:
        number, (first, size) = which % len(self.seqs), part
        lease = self.sides[0].leases[number]
        indices = [index for start, end in lease.ranges for index in range(start, end)]
        results = [
            TaskResult(index, outcome, duration_us + index, data=b"value") for index in indices[first : first + size]
        ]
        seq, self.seqs[number] = self.seqs[number], self.seqs[number] + 1
        self.sent.append((number, results, seq, self.closes(number, closes, {result.index for result in results})))
        self.say(*self.sent[-1])

    def closes(self, number: int, wished: bool, said: set[int]) -> bool:
        """A worker closes a lease when it has said what became of all its tasks, and while it has it."""
        self.left[number] -= said
        return wished and not self.left[number] and number in self.reference.live

    @precondition(lambda self: self.sent)
    @rule(which=which)
    def publish_again(self, which: int) -> None:
        """The answer was lost."""
        self.say(*self.sent[which % len(self.sent)])

    def say(self, number: int, results: list[TaskResult], seq: int, closes: bool) -> None:
        lease = self.sides[0].leases[number]
        asked = [
            PublishResults(
                worker_id="w1", executors=2,
                publications=[Publication(
                    **ref, seq=seq, results=results, closes=closes, wait_us=wait_us(lease.wait_us, lease.attempt)
                )],
            )
            for ref in self.refs(number)
        ]  # fmt: skip
        self.reference.packages[lease.package_id].publish(results)
        stopped = [result.index for result in results if result.outcome == "cancelled"]
        self.reference.give_back(lease, ranges.of(stopped))
        if closes:
            self.reference.close(lease)
        (view,) = self.ask_each(WORKER_TOKEN, routes.PUBLISH_RESULTS, asked).leases
        assert not (view.state == "wanted" and self.reference.packages[lease.package_id].ended)

    @precondition(lambda self: self.reference.live)
    @rule(which=which)
    def extend(self, which: int) -> None:
        number = sorted(self.reference.live)[which % len(self.reference.live)]
        lease, until = self.reference.live[number]
        if until <= self.clock.now():
            return  # AWS takes no receipt that has run out
        asked = [ExtendLeases(worker_id="w1", leases=[LeaseRef(**ref)]) for ref in self.refs(number)]
        (view,) = self.ask_each(WORKER_TOKEN, routes.EXTEND_LEASES, asked).leases
        if view.state == "wanted":
            self.reference.live[number] = lease, self.clock.now() + POLICY.lease_s

    @precondition(lambda self: self.reference.live)
    @rule(which=which, tasks=st.integers(1, 6), closes=st.booleans())
    def give_back(self, which: int, tasks: int, closes: bool) -> None:
        number = sorted(self.reference.live)[which % len(self.reference.live)]
        lease = self.sides[0].leases[number]
        indices = [index for start, end in lease.ranges for index in range(start, end)][-tasks:]
        numbers = ranges.of(indices)
        closes = self.closes(number, closes, set(indices))
        seq, self.seqs[number] = self.seqs[number], self.seqs[number] + 1
        asked = [
            GiveBack(worker_id="w1", returns=[Return(**ref, seq=seq, ranges=numbers, closes=closes)])
            for ref in self.refs(number)
        ]
        self.reference.give_back(lease, numbers)
        if closes:
            self.reference.close(lease)
        self.ask_each(WORKER_TOKEN, routes.GIVE_BACK, asked)

    @precondition(lambda self: self.seqs)
    @rule(which=which, size=st.integers(1, 10**6))
    def prepare_results(self, which: int, size: int) -> None:
        lease = self.sides[0].leases[which % len(self.seqs)]
        wanted = PrepareResult(package_id=lease.package_id, lease_id=lease.lease_id, seq=0, size=size, crc32=7)
        self.ask(WORKER_TOKEN, routes.PREPARE_RESULTS, PrepareResults(results=[wanted]))

    # The operator.

    @rule(account=st.sampled_from(sorted(ACCOUNTS)), key=st.integers(0, 3), us=st.integers(-20_000, 20_000))
    def grant(self, account: str, key: int, us: int) -> None:
        request = GrantQuota(idempotency_key=f"{key}", account_id=account, quota_us=us)
        self.ask(ADMIN_TOKEN, routes.GRANT_QUOTA, request)

    @rule(account=st.sampled_from(sorted(ACCOUNTS)), sure=st.integers(0, 9))
    def revoke(self, account: str, sure: int) -> None:
        if sure:
            return
        self.ask(ADMIN_TOKEN, routes.REVOKE_ACCOUNT, RevokeAccount(account_id=account))
        self.revoked.add(account)
        for package in self.reference.packages.values():
            assert package.ended or package.account != account
        self.pass_time(REMEMBERED_S)

    @rule(key=st.sampled_from(["ann", "cid"]), account=st.sampled_from([*sorted(ACCOUNTS), ADMIN_TOKEN]))
    def look_around(self, key: str, account: str) -> None:
        self.create_account(key)
        self.ask(ADMIN_TOKEN, routes.LIST_ACCOUNTS, ListAccounts())
        self.list_packages(account)
        self.prepare_uploads(account, 10**6)

    def create_account(self, key: str) -> None:
        request = CreateAccount(idempotency_key=key, name=key, token_hash=hash_token(f"token {key}"), quota_us=7)
        self.ask(ADMIN_TOKEN, routes.CREATE_ACCOUNT, request)

    # Time.

    @rule(seconds=st.sampled_from([1.0, 2.0, 3.0, 7.0, 13.0]))
    def pass_time(self, seconds: float) -> None:
        """Leases run out; a chunk's last one is lost by name."""
        until = self.clock.now() + seconds
        for number, (lease, ends) in list(self.reference.live.items()):
            if ends <= until and lease.attempt >= LAST_RECEIVE:
                self.lose(number)
        self.clock.move(seconds)
        for number, (_, ends) in list(self.reference.live.items()):
            if ends <= self.clock.now():
                del self.reference.live[number]

    def lose(self, number: int) -> None:
        """As the function of the dead letters does."""
        lease = self.sides[0].leases[number]
        body = chunk_body(lease.package_id, Piece(lease.start, lease.end, lease.generation))
        before = self.sides[0].stores.packages.load(lease.package_id)
        for side in self.sides:
            receipt = side.leases[number].receipt
            side.timer.lost(Message(body, receipt, LAST_RECEIVE, 0))
            side.stores.queue.delete([receipt])
        del self.reference.live[number]
        package = self.reference.packages[lease.package_id]
        for piece in before.open if before else ():
            alone = piece.end - piece.start == 1 and lease.start <= piece.start < lease.end
            if alone and piece.generation == lease.generation:
                package.publish([TaskResult(piece.start, "lost", 0)])
        self.look()

    @rule()
    def timer(self) -> None:
        done = [side.timer.fold_due() for side in self.sides]
        assert len(set(done)) == 1
        self.look()

    @rule(days=st.integers(0, 60))
    def days_pass(self, days: int) -> None:
        """Now and then for so long that packages expire and are forgotten."""
        if days > 2:
            return
        self.pass_time((1.5, 8.0, 15.0)[days] * DAY_S)
        for _ in range(3):
            self.timer()
        self.forget()

    def forget(self) -> None:
        heads = {head.package_id: head for head in self.heads()}
        for package_id, package in self.reference.packages.items():
            head = heads.get(package_id)
            package.gone = package.gone or head is None or head.state == "expired" or head.acknowledged_at is not None

    def teardown(self) -> None:
        """Everything comes to its end, and every charge is final."""
        self.every = 1  # type: ignore[misc]
        for _ in range(60):
            for number in self.take("w1", f"attempt-{next(self.names)}", 10):
                self.publish(number, (0, 12), True, "ok", 500)
            self.pass_time(7.0)
            self.timer()
            if all(head.settled for head in self.heads()) and not self.sides[0].stores.queue.waiting():
                break
        for head in self.heads():
            package = self.reference.packages[head.package_id]
            assert head.ended, head
            assert head.settled, head
            assert package.ended != "completed" or head.charged_us == head.used_us >= package.used_us
        assert [side.stores.queue.waiting() for side in self.sides] == [0] * len(self.sides)
        self.the_books_balance()
        if self.steps >= self.length:
            self.tally.runs += 1
            self.tally.steps += self.steps
