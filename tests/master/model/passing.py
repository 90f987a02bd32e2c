"""Time passes: leases run out, packages expire and are forgotten."""

from hypothesis import strategies as st
from hypothesis.stateful import rule

from cloudpar_master.ports import Message
from cloudpar_master.services.chunk_text import ChunkText
from cloudpar_master.services.steps import finish
from cloudpar_protocol.payloads import TaskResult

from .asking import Asking

DAY_S = 86_400.0
LAST_RECEIVE = 4
"""A chunk that surfaces after this many deliveries is dead. Here the test loses it, since queues report it at different
times."""


class Passing(Asking):
    """The clock and the timer."""

    @rule(seconds=st.sampled_from([1.0, 2.0, 3.0, 7.0, 13.0]))
    def pass_time(self, seconds: float) -> None:
        """Let leases run out. The chunk of a last lease is lost."""
        until = self.clock.now() + seconds
        for number, (lease, ends) in list(self.reference.live.items()):
            if ends <= until and lease.attempt >= LAST_RECEIVE:
                self.lose(number)
        self.clock.move(seconds)
        for number, (_, ends) in list(self.reference.live.items()):
            if ends <= self.clock.now():
                del self.reference.live[number]

    def lose(self, number: int) -> None:
        """Report a lost chunk, as the function for dead letters does."""
        lease = self.sides[0].leases[number]
        body = ChunkText(lease.package_id, lease.start, lease.end, lease.generation).text
        before = self.sides[0].stores.packages.load(lease.package_id)
        for side in self.sides:
            receipt = side.leases[number].receipt
            side.timer.lost(Message(body, receipt, LAST_RECEIVE, 0))
            side.stores.queue.delete([receipt])
        del self.reference.live[number]
        package = self.reference.packages[lease.package_id]
        for chunk in before.tasks.open if before else ():
            alone = lease.end - lease.start == 1 and chunk.start == lease.start
            if alone and chunk.generation == lease.generation:
                package.publish([TaskResult(chunk.start, "lost", 0)])
        self.look()

    @rule()
    def timer(self) -> None:
        done = [finish(side.timer.fold_due()) for side in self.sides]
        assert len({due.packages for due in done}) == 1
        assert not any(due.failures for due in done)
        self.look()

    @rule(days=st.integers(0, 60))
    def days_pass(self, days: int) -> None:
        """Let days pass now and then, so that packages expire and are forgotten."""
        if days > 2:
            return
        self.pass_time((1.5, 8.0, 15.0)[days] * DAY_S)
        for _ in range(3):
            self.timer()
        for package in self.reference.packages.values():
            package.sent_again = True
        self.forget()

    def forget(self) -> None:
        heads = {head.package_id: head for head in self.heads()}
        for package_id, package in self.reference.packages.items():
            head = heads.get(package_id)
            package.gone = (
                package.gone or head is None or head.life.state == "expired" or head.life.acknowledged_at is not None
            )
