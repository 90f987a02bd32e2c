"""Carries the fold out: load, fold, save, look again, do what is left to do. Rules 1, 3, 6 and 9 of the design."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from cloudpar_master.core import planning
from cloudpar_master.core.effects import Delete, Effect, Forget, Reserve, Send, Settle, due_at, pending
from cloudpar_master.core.events import Broken, Deleted, Event, ExecutorsIdle, Published, QuotaGranted, Sent, Settled
from cloudpar_master.core.fold import Folded, fold
from cloudpar_master.core.head import SCHEMA, Head
from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import InboxItem, Opened, PackageStore, Sending
from cloudpar_protocol.errors import Unavailable
from cloudpar_protocol.payloads import BlobData

from .chunk_text import ChunkText
from .deployment import Deployment
from .result_pages import result_bytes

EVENTS = 90
"""So many that waited are taken in by one fold: their deletion and the save fit into few calls."""

PART_BYTES = 512 * 1024
LIGHT_BYTES = 16 * 1024

TRIES, HEAVY_TRIES = 20, 2
"""So often somebody who loses every race tries; and so often with large results before these are appended."""

SMALLEST_COST_US = 1_000
"""What handing out a chunk counts for at least when packages take turns."""

UNCUT = 100
"""Among how many packages with uncut tasks the next closed one is looked for."""

STALE_S = 2.0
"""Who looks at a head older than this folds it: somebody always comes next (rule 3)."""

Item = tuple[str, Event]
"""An event and its key: what comes twice has the same one."""


def sending(head: Head, chunk: ChunkText, policy: Policy) -> Sending:
    """A chunk as it is sent."""
    text = chunk.text
    tasks = chunk.end - chunk.start
    cost_us = round(head.mean_us * tasks) if head.measured else policy.chunk_target_us
    first = chunk.start == 0
    # A chunk that workers were lost with is not new, and must not take others' place again and again.
    express = chunk.start < planning.EXPRESS_TASKS and not chunk.losses
    return Sending(
        text, text, head.account_id, head.package_id,
        first=first, cost_us=max(cost_us, SMALLEST_COST_US), python=head.python,
        express=express,
    )  # fmt: skip


class Opening:
    """How many packages of an account are open, read once for all closed ones that ask: these may be hundreds."""

    def __init__(self, packages: PackageStore) -> None:
        self._packages = packages
        self._open: dict[str, int] = {}

    def count(self, account_id: str) -> int:
        """Of the account, with those that were opened since."""
        if account_id not in self._open:
            heads = self._packages.unsettled(account_id)
            self._open[account_id] = sum(not head.ended and not head.closed for head in heads)
        return self._open[account_id]

    def note(self, head: Head) -> None:
        """One more may be open."""
        self._open[head.account_id] += not (head.ended or head.closed)


class Folding:
    """Folds packages of one deployment."""

    def __init__(self, deployment: Deployment) -> None:
        self._on = deployment

    def begin(self, head: Head) -> None:
        """Go on with a package whose first head was just written."""
        self._carry_out(head)

    def look(self, package_id: str) -> Opened | None:
        """A package for somebody who reads it. If its head is old it is folded first: somebody always comes next."""
        opened = self._on.packages.open(package_id, EVENTS)
        # A head of the future comes from a master whose clock is ahead: it may be just as old.
        if opened is None or abs(self._on.clock.now() - opened.head.now) <= STALE_S:
            return opened
        head, _ = self._take(package_id, [], opened=opened)
        return None if head is None else Opened(head, [], more=False)

    def advance(self, package_id: str, items: Sequence[Item] = (), *, due: bool = False) -> Head | None:
        """Take events in, with what is in the inbox and what time has brought, and do what is left to do.

        `due` folds in any case: the registry said so, and only a fold corrects it. Returns the newest head. If that is
        a newer master's, the events wait for such a one.

        Raises:
            Unavailable: Others kept winning the race. The events are durable, but somebody has to come and take them.
        """
        head = None
        for part in _parts(items):
            head, taken = self._take(package_id, part, due=due)
            if part and not taken and head is not None and head.schema <= SCHEMA:
                raise _busy(package_id)
        return head

    def confirm(self, package_id: str, key: str, event: Event, opened: Opened | None = None) -> Head | None:
        """Take an event in and return the head of a fold that has taken it.

        Raises:
            Unavailable: Others kept winning the race; the event is durable and will be taken.
        """
        head, taken = self._take(package_id, [(key, event)], opened=opened)
        if not taken:
            raise _busy(package_id)
        return head

    def open_next(self, ended: Head) -> None:
        """A package has ended: open the oldest of its account's closed ones, if there is any.

        If this process dies before, that one opens when the next package ends, or when executors idle.
        """
        packages = self._on.packages
        wanted = self._on.policy.looks_at_end and not ended.closed
        uncut = packages.uncut(UNCUT) if wanted else []
        found = packages.find(uncut) if uncut else {}
        for package_id in uncut:
            head, _ = found.get(package_id, (None, None))
            if head is not None and head.closed and not head.ended and head.account_id == ended.account_id:
                with suppress(Unavailable):  # others are at it
                    self.advance(package_id, [(f"o#{ended.package_id}", ExecutorsIdle(executors=1))])
                return

    def open_closed(self, head: Head, others: Opening) -> Head:
        """Open a closed package if fewer of its account are open than may be."""
        policy = self._on.policy
        most = policy.open_small_packages if head.tasks <= planning.SMALL_PACKAGE else policy.open_packages
        if others.count(head.account_id) >= most:
            return head
        event = ExecutorsIdle(executors=1)
        opened = self.advance(head.package_id, [(f"o#{head.package_id}#{head.version}", event)]) or head
        others.note(opened)
        return opened

    def _take(self, package_id: str, mine: Sequence[Item], *, opened: Opened | None = None,
              due: bool = False) -> tuple[Head | None, bool]:  # fmt: skip
        """Fold until our events and all that waits are taken. Returns the head, and whether they are.

        They go straight into a head if nobody else folds. After a lost race they are appended, so that whoever wins
        the next one takes them: the loser looks, and only leaves when they are gone.
        """
        packages = self._on.packages
        waiting: set[str] = set()
        again = HEAVY_TRIES if sum(_weight(event) for _, event in mine) > LIGHT_BYTES else 0
        for attempt in range(TRIES):
            opened = opened or packages.open(package_id, EVENTS)
            if opened is None:
                return None, True
            head, inbox, more = opened
            if waiting and not more and waiting.isdisjoint(item.key for item in inbox):
                return packages.load(package_id), True  # what was read may be older than the head that took them
            if head.schema > SCHEMA:
                packages.append(package_id, mine)
                return head, not (mine or waiting)
            if not (mine or inbox or due or self._is_due(head)):
                return head, True
            opened, saved = None, self._fold_and_save(head, inbox, [event for _, event in mine])
            due = False  # whoever won has told the registry
            if saved is None:
                if attempt < again:
                    continue  # to store it twice costs more than another try
                packages.append(package_id, mine)
                waiting.update(key for key, _ in mine)
            else:
                saved = self._carry_out(saved)
                waiting.difference_update(item.key for item in inbox)
                if saved is None or not (more or waiting):
                    return saved, True
            mine = ()
        return packages.load(package_id), not waiting

    def _is_due(self, head: Head) -> bool:
        return self._on.clock.now() >= due_at(head, self._on.policy)

    def _carry_out(self, head: Head) -> Head | None:
        """Do what a head that we saved leaves to do, and take the answers in. Returns the newest head.

        Who loses the race with an answer drops it: the winner's head asks for the same, and gets the same.
        """
        while True:
            answers: list[Event] = []
            for effect in pending(head, self._on.policy):
                if isinstance(effect, Forget):
                    self._on.blobs.abandon(f"results/{head.package_id}/")
                    self._on.packages.forget(head.package_id)
                    return None
                answer = self._answer(head, effect)
                answers += [answer] if answer else []
            if not answers:
                return head
            saved = self._fold_and_save(head, [], answers)
            if saved is None:
                return self._on.packages.load(head.package_id)
            head = saved

    def _fold_and_save(self, head: Head, inbox: Sequence[InboxItem], others: Sequence[Event]) -> Head | None:
        """One fold, of what waited and of events that nobody has stored; None: somebody else folded this head."""
        folded, results = self._fold_safely(head, inbox, others)
        if not self._on.packages.save(folded, due_at(folded, self._on.policy), results):
            return None
        if inbox:
            self._on.packages.delete_events(head.package_id, [item.key for item in inbox])
        return folded

    def _fold_safely(self, head: Head, inbox: Sequence[InboxItem], others: Sequence[Event]) -> Folded:
        now, policy = self._on.clock.now(), self._on.policy
        good = [*(item.event or Broken(message=f"event {item.key} is unreadable") for item in inbox), *others]
        try:
            return fold(head, good, now, policy)
        except Exception as error:  # noqa: BLE001  an event that cannot be folded must not stop its package for ever
            text = f"the master could not take in an event ({error!r}): report this with the package id"
            return fold(head, [Broken(message=text)], now, policy)

    def _answer(self, head: Head, effect: Effect) -> Event | None:
        """Carry an effect out; None: nothing came of it."""
        on = self._on
        match effect:
            case Reserve(slice=number, wanted_us=wanted_us):
                got = on.accounts.reserve(head.account_id, head.debtor, number, wanted_us)
                exhausted = got.granted_us == 0 and (got.exhausted or (head.dry and self._all_dry(head.account_id)))
                return QuotaGranted(slice=number, granted_us=got.granted_us, exhausted=exhausted)
            case Send(chunks=chunks):
                texts = [ChunkText.of(head.package_id, piece) for piece in chunks]
                sent = on.queue.send([sending(head, text, on.policy) for text in texts])
                done = [chunk for chunk, is_sent in zip(chunks, sent, strict=True) if is_sent]
                return Sent(chunks=[(chunk.start, chunk.end, chunk.generation) for chunk in done]) if done else None
            case Settle(used_us=used_us):
                charged_us = on.accounts.settle(head.account_id, head.debtor, used_us, head.reserved_us)
                return Settled(charged_us=charged_us)
            case Delete():
                self._delete(head)
                return Deleted()
            case Forget():
                raise AssertionError(effect)

    def _all_dry(self, account_id: str) -> bool:
        """Whether packages of the account that wait for each other's slices would wait for ever: all are used up.

        What the account holds beyond theirs is a slice that a package got and has not noted yet.
        """
        heads = self._on.packages.unsettled(account_id)
        account = self._on.accounts.get(account_id)
        held_us = 0 if account is None else account.reserved_us
        return all(head.dry for head in heads) and held_us <= sum(head.reserved_us for head in heads)

    def _delete(self, head: Head) -> None:
        spec = self._on.packages.spec(head.package_id)
        if spec is not None and isinstance(spec.start.data, BlobData):
            self._on.blobs.delete(spec.start.data.blob.key)
        self._on.blobs.delete(f"results/{head.package_id}/")
        self._on.packages.delete_pages(head.package_id)


def _parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Events that are folded together: a result page travels in one answer."""
    part: list[Item] = []
    room = PART_BYTES
    for item in items:
        room -= _weight(item[1])
        if part and room < 0:
            yield part
            part, room = [], PART_BYTES - _weight(item[1])
        part.append(item)
    yield part


def _weight(event: Event) -> int:
    return sum(map(result_bytes, event.results)) if isinstance(event, Published) else 0


def _busy(package_id: str) -> Unavailable:
    return Unavailable(f"package {package_id} is very busy: try again", retry_after_s=1.0)
