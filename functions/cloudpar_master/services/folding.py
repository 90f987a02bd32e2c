"""Carries the fold out: load, fold, save, look again, do what is left to do. Rules 1, 3, 6 and 9 of the design."""

from collections.abc import Sequence

from cloudpar_master.core.effects import Delete, Effect, Forget, Reserve, Send, Settle, due_at, pending
from cloudpar_master.core.events import Broken, Deleted, Event, QuotaGranted, Sent, Settled
from cloudpar_master.core.fold import Folded, fold
from cloudpar_master.core.head import SCHEMA, Head, Piece
from cloudpar_master.ports import InboxItem, ResultPage, Sending
from cloudpar_protocol.errors import Unavailable
from cloudpar_protocol.payloads import BlobData

from .deployment import Deployment

EVENTS = 90
"""Events of one fold: their deletion and the save fit into few calls."""

CONFIRM_TRIES = 20

PACKAGES = 1_000
"""So many packages of an account are looked at."""


def chunk_body(package_id: str, piece: Piece) -> str:
    """A chunk as a queue message; the text is also its group, and so its deduplication id (rule 4)."""
    return f"{package_id}#{piece.start}#{piece.end}#{piece.generation}"


def parse_chunk(body: str) -> tuple[str, Piece]:
    """The reverse of chunk_body.

    >>> parse_chunk(chunk_body("p1", Piece(0, 5, 7)))
    ('p1', Piece(start=0, end=5, generation=7, sent=False))
    """
    package_id, start, end, generation = body.split("#")
    return package_id, Piece(int(start), int(end), int(generation))


class Folding:
    """Folds packages of one deployment."""

    def __init__(self, deployment: Deployment) -> None:
        self._on = deployment

    def confirm(self, package_id: str, key: str, event: Event) -> Head | None:
        """Append an event and return the head of a fold that has taken it.

        Raises:
            Unavailable: Others kept winning the race; the event is durable and will be taken.
        """
        self._on.packages.append(package_id, [(key, event)])
        for _ in range(CONFIRM_TRIES):
            taken: set[str] = set()
            head = self._go_on(self._on.packages.load(package_id), won=False, taken=taken)
            # Others may have taken it. Of their inbox only its end proves that: a page shows no more than the oldest.
            if head is None or key in taken:
                return head
            if not self._on.packages.inbox(package_id, EVENTS):
                return self._on.packages.load(package_id)
        raise Unavailable(f"package {package_id} is very busy: try again", retry_after_s=1.0)

    def begin(self, head: Head) -> None:
        """Go on with a package whose first head was just written."""
        self._go_on(head, won=True, taken=set())

    def advance(self, package_id: str, *, due: bool = False) -> Head | None:
        """Fold what is in the inbox and what time has brought, and do what is left to do. Returns the newest head.

        `due` folds in any case: the registry said so, and only a fold corrects it.
        """
        return self._go_on(self._on.packages.load(package_id), won=False, due=due, taken=set())

    def _go_on(self, head: Head | None, *, won: bool, taken: set[str], due: bool = False) -> Head | None:
        """Fold until nothing is left to fold; notes the keys of the events that were taken in."""
        answers: list[Event] = []
        while head is not None and head.schema <= SCHEMA:
            items = self._on.packages.inbox(head.package_id, EVENTS)
            if items or answers or (not won and (due or self._is_due(head))):
                saved = self._fold_and_save(head, items, answers)
                if saved is None:
                    # The winner reads the inbox after its save, so it takes our events; we only leave it our answers.
                    self._leave(head.package_id, head.version, answers)
                    return self._on.packages.load(head.package_id)
                taken.update(item.key for item in items)
                head, answers, won = saved, [], True
                continue
            if not won:
                break
            head, answers = self.carry_out(head)
            if not answers:
                break
        return head

    def _is_due(self, head: Head) -> bool:
        return self._on.clock.now() >= due_at(head, self._on.policy)

    def carry_out(self, head: Head) -> tuple[Head | None, list[Event]]:
        """Do what a head that we saved leaves to do. Returns the answers that have to be folded at once."""
        answers: list[Event] = []
        for effect in pending(head, self._on.policy):
            if isinstance(effect, Forget):
                self._on.packages.forget(head.package_id)
                return None, []
            answer = self._answer(head, effect)
            if isinstance(answer, Sent):
                # No hurry: whoever folds next takes it along.
                self._leave(head.package_id, head.version, [answer])
            else:
                answers.append(answer)
        return head, answers

    def _fold_and_save(self, head: Head, items: Sequence[InboxItem], answers: Sequence[Event]) -> Head | None:
        folded = self._fold_safely(head, items, answers)
        version, nonce = folded.head.page
        if folded.results:
            self._on.packages.put_page(head.package_id, ResultPage(version, nonce, head.page, folded.results))
        if not self._on.packages.save(folded.head, due_at(folded.head, self._on.policy)):
            return None
        if items:
            self._on.packages.delete_events(head.package_id, [item.key for item in items])
        return folded.head

    def _fold_safely(self, head: Head, items: Sequence[InboxItem], answers: Sequence[Event]) -> Folded:
        now, policy, nonce = self._on.clock.now(), self._on.policy, self._on.ids.fresh()
        good = [*answers, *(item.event or Broken(message=f"event {item.key} is unreadable") for item in items)]
        try:
            return fold(head, good, now, policy, nonce)
        except Exception as error:  # noqa: BLE001  an event that cannot be folded must not stop its package for ever
            text = f"the master could not take in an event ({error!r}): report this with the package id"
            return fold(head, [Broken(message=text)], now, policy, nonce)

    def _answer(self, head: Head, effect: Effect) -> Event:
        on = self._on
        match effect:
            case Reserve(slice=number, wanted_us=wanted_us):
                got = on.accounts.reserve(head.account_id, head.package_id, number, wanted_us)
                exhausted = got.granted_us == 0 and (got.exhausted or (head.dry and self._all_dry(head.account_id)))
                return QuotaGranted(slice=number, granted_us=got.granted_us, exhausted=exhausted)
            case Send(chunks=chunks):
                texts = [chunk_body(head.package_id, piece) for piece in chunks]
                sent = on.queue.send([Sending(text, text) for text in texts])
                done = [chunk for chunk, is_sent in zip(chunks, sent, strict=True) if is_sent]
                return Sent(chunks=[(chunk.start, chunk.end, chunk.generation) for chunk in done])
            case Settle(used_us=used_us):
                return Settled(charged_us=on.accounts.settle(head.account_id, head.package_id, used_us))
            case Delete():
                self._delete(head)
                return Deleted()
            case Forget():
                raise AssertionError(effect)

    def _all_dry(self, account_id: str) -> bool:
        """Whether packages of the account that wait for each other's slices would wait for ever: all are used up."""
        heads = self._on.packages.of_account(account_id, PACKAGES)
        return all(head.settled or head.dry for head in heads)

    def _delete(self, head: Head) -> None:
        spec = self._on.packages.spec(head.package_id)
        if spec is not None and isinstance(spec.start.data, BlobData):
            self._on.blobs.delete(spec.start.data.blob.key)
        self._on.blobs.delete(f"results/{head.package_id}/")
        self._on.packages.delete_pages(head.package_id)

    def _leave(self, package_id: str, version: int, answers: Sequence[Event]) -> None:
        items = [(f"a#{version}#{number}#{self._on.ids.fresh()}", event) for number, event in enumerate(answers)]
        if items:
            self._on.packages.append(package_id, items)
