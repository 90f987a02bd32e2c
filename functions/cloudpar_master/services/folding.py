"""Carries out folds: loads a head, folds it, saves it, and carries out its effects."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cloudpar_master.core import pacing
from cloudpar_master.core.effects import Forget, due_at, look_at, pending
from cloudpar_master.core.events import Broken, Event, GaveBack, Published, Sent
from cloudpar_master.core.fold import Folded, fold
from cloudpar_master.core.head import Head
from cloudpar_master.core.recent import Recent
from cloudpar_master.ports import AccountRecord, InboxItem, Opened
from cloudpar_protocol.errors import Unavailable

from .backend import Backend
from .effect_runner import EffectRunner
from .result_pages import result_bytes

EVENTS = 400
"""How many inbox events one fold consumes at most. On AWS one request deletes 25 events. To save the large head of a
package with many workers once more may cost more than to delete hundreds of events."""

LIGHT_BYTES = 16 * 1024
"""If a fold with more bytes of results than this loses the race to save, the fold is tried again before the results are
appended to the inbox: storing results twice costs more than a fold."""

ATTEMPTS = 20
"""How many times one call reads the inbox to fold it before the call gives up, for example because other processes win
the races to save. The events are in the inbox by then, for another process to fold."""

FEW_ATTEMPTS = 3
"""Replaces ATTEMPTS for a package with many workers (pacing.pause_s). Each lost race costs as much as a save. If many
calls made ATTEMPTS attempts, they would keep the table busy with folds that cannot be saved. Few attempts suffice,
because the winner of a race usually takes the events that were in the inbox."""

HEAVY_ATTEMPTS = 3
"""How many folds with more than LIGHT_BYTES of results are tried before the results are appended to the inbox."""

STALE_S = 2.0
"""Readers fold heads older than this, in seconds, so that progress does not depend on one process."""

REMEMBERED = 1_000
"""For how many packages a process remembers that their chunks were sent although their heads do not show it."""

Item = tuple[str, Event]
"""An event and its key. An event that is sent twice has the same key, so the inbox stores the event once."""


class Taken(NamedTuple):
    """The newest head (None: the package is gone), and whether folds have consumed all given events, or soon will."""

    head: Head | None
    all: bool


class Folding:
    """Folds packages of one backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._effects = EffectRunner(backend)
        self._sent = Recent[str, list[Event]](REMEMBERED)
        """By package: the events that say which chunks were sent, if no saved head shows it yet."""
        self._pausing = Recent[str, None](REMEMBERED)
        """The packages that have pauses between their folds, as far as this process knows."""

    def start(self, head: Head) -> None:
        """Carry out the effects of a package's first head, which was just written."""
        self._carry_out(head)

    def look(self, package_id: str) -> Opened | None:
        """Return a package for a reader; None if there is no such package.

        If the head is old, the package is folded first, with its waiting events: the master that wrote the head may
        have died before it carried the effects out. A package with pauses between its folds is folded only after a
        pause.
        """
        opened = self._backend.packages.open(package_id, EVENTS)
        if opened is None:
            return None
        head, pause_s = opened.head, self._note_pause(opened.head)
        # `abs`: a head with a later time than now is from a master whose clock is ahead, so it may be old, too.
        fresh = abs(self._backend.clock.now() - head.now) <= (pause_s or STALE_S)
        # Without waiting events this call usually folds nothing, so do not claim the fold: the claim would only make
        # the next publications wait.
        if fresh or (pause_s and opened.inbox and not self._claims(head, pause_s)):
            return opened
        newest = self._take(package_id, opened=opened).head
        return None if newest is None else Opened(newest, [], more=False)

    def visible(self, account: AccountRecord | None, package_id: str) -> Opened | None:
        """Return a package as `look` does; None also if it does not belong to `account` (None: an operator)."""
        opened = self.look(package_id)
        theirs = opened is not None and account is not None and opened.head.account_id != account.account_id
        return None if theirs else opened

    def advance(self, package_id: str, items: Sequence[Item] = (), *, due: bool = False) -> Head | None:
        """Fold events together with those of the inbox, and carry out the effects.

        Publications and give-backs may wait in the inbox for the next fold (pacing.pause_s).

        Args:
            package_id: The package.
            items: Events with their keys. If they have many results, this is one of the sequences that `parts` makes.
            due: Whether to fold even without events, because the store's index says that the package is due. Only a
                save corrects this index.

        Returns:
            The newest head; None if the package is gone. If a master of a newer release wrote the head, or the head
            cannot be read, the events wait in the inbox.

        Raises:
            Unavailable: Other processes won each race. The caller should try again with all events: some of them may
                not be durable.
            TooLarge: An event is larger than the store's records can be, and had to wait in the inbox: its fold lost a
                race, or a master of a newer release has written the head.
        """
        head, taken = self._take(package_id, items, due=due)
        if items and not taken and head is not None and not head.foreign:
            raise _busy(package_id)
        return head

    def confirm(self, package_id: str, key: str, event: Event, opened: Opened | None = None) -> Head | None:
        """Fold an event, and return a head that has consumed it; None if the package is gone.

        A give-back may wait in the inbox for the next fold (pacing.pause_s); the head has not consumed it then.

        `opened` is the package, if the caller has just read it.

        Raises:
            Unavailable: Other processes won each race, or a master of a newer release wrote the head. The event is
                durable, and a later fold consumes it.
        """
        head, taken = self._take(package_id, [(key, event)], opened=opened)
        if not taken:
            raise _busy(package_id)
        return head

    def _take(
        self, package_id: str, items: Sequence[Item] = (), *, opened: Opened | None = None, due: bool = False
    ) -> Taken:
        """Fold these events and those that wait in the inbox."""
        asked = package_id in self._pausing and _could_wait(items)
        if asked:
            # Without this, a process would read the inbox, too, only to learn that these events may wait.
            head = self._backend.packages.load(package_id)
            if head is None or self._leaves(head, items):
                return Taken(head, all=True)
            opened = None
        taken = self._try_direct(package_id, items, opened, due=due, asked=asked)
        return self._append_and_follow(package_id, items) if taken is None else taken

    def _leaves(self, head: Head, items: Sequence[Item]) -> bool:
        """Leave events to the next fold if they may wait for it. Returns whether they are stored.

        They may wait if the package has just been folded, or if another process has claimed the next fold.
        """
        pause_s = self._note_pause(head)
        if not (pause_s and _may_wait(items, head, pause_s)):
            return False
        # A head with a later time than now is from a master whose clock is ahead, so it may be old.
        recent = 0.0 <= self._backend.clock.now() - head.now < pause_s
        if not recent and self._claims(head, pause_s):
            return False
        self._backend.packages.append(head.package_id, items, head.started_at)
        return True

    def _claims(self, head: Head, pause_s: float) -> bool:
        """Claim the next fold of a package with many workers. Returns False if another process has claimed it.

        Without claims, several processes would fold at once, and a fold that cannot be saved costs as much as a save.
        """
        now = self._backend.clock.now()
        return self._backend.packages.claim(head.package_id, now, now + pause_s)

    def _note_pause(self, head: Head) -> float:
        """Return the time between two folds of a package, and remember whether it has any."""
        pause_s = 0.0 if head.foreign else pacing.pause_s(head, self._backend.policy)
        if pause_s:
            self._pausing[head.package_id] = None
        else:
            self._pausing.pop(head.package_id, None)
        return pause_s

    def _try_direct(
        self, package_id: str, items: Sequence[Item], opened: Opened | None, *, due: bool, asked: bool
    ) -> Taken | None:
        """Fold events straight into a head, without storing them first. None: other processes won each race.

        If a master of a newer release has written the head, the events are stored and not folded. The same happens if
        the events may wait for the next fold. If `asked`, the caller has found that they may not wait.
        """
        packages = self._backend.packages
        events = [event for _, event in items]
        heavy = sum(map(_weight, events)) > LIGHT_BYTES
        for _ in range(HEAVY_ATTEMPTS if heavy else 1):
            opened = opened or packages.open(package_id, EVENTS)
            if opened is None:
                return Taken(None, all=True)
            head, inbox, more = opened
            if head.foreign:
                # This master could misread such a head, so it only stores the events for a newer master.
                packages.append(package_id, items)
                # No caller waits for a fold of an unreadable head, because no fold would come.
                return Taken(head, all=not items or head.damaged)
            if not (events or inbox or due or self._is_due(head)):
                return Taken(head, all=True)
            if not asked and self._leaves(head, items):
                return Taken(head, all=True)
            saved = self._fold_and_save(head, inbox, events)
            if saved is not None:
                newest = self._carry_out(saved)
                return self._follow(package_id, set()) if more and newest is not None else Taken(newest, all=True)
            opened, due = None, False  # the winner's save has corrected the index of due packages
        return None

    def _append_and_follow(self, package_id: str, items: Sequence[Item]) -> Taken:
        """Store events whose fold lost the race, and fold as `_follow` does until a fold has consumed them.

        The winner of a race reads the inbox only before its save. So the loser must read the inbox after it has
        appended its events: otherwise they would wait there until another process folds the package, which may be much
        later. A package with pauses is folded soon in any case.
        """
        if items:
            self._backend.packages.append(package_id, items)
            if package_id in self._pausing and _could_wait(items):
                head = self._backend.packages.load(package_id)
                pause_s = 0.0 if head is None else self._note_pause(head)
                if head is None or (pause_s and _may_wait(items, head, pause_s)):
                    return Taken(head, all=True)
        return self._follow(package_id, {key for key, _ in items})

    def _follow(self, package_id: str, waiting: set[str]) -> Taken:
        """Fold until the inbox is empty, or at least until the inbox has none of these keys.

        Gives up after ATTEMPTS or FEW_ATTEMPTS attempts.
        """
        packages = self._backend.packages
        for _ in range(FEW_ATTEMPTS if package_id in self._pausing else ATTEMPTS):
            opened = packages.open(package_id, EVENTS)
            if opened is None:
                return Taken(None, all=True)
            head, inbox, more = opened
            # If `more`, the inbox has events that were not read, and the events in `waiting` may be among them.
            if waiting and not more and waiting.isdisjoint(item.key for item in inbox):
                # Head and inbox are not read at one instant: this head may be older than the fold that took the events.
                return Taken(packages.load(package_id), all=True)
            if head.foreign:
                return Taken(head, all=not waiting or head.damaged)
            if not (inbox or self._is_due(head)):
                return Taken(head, all=True)
            saved = self._fold_and_save(head, inbox, [])
            if saved is None:
                continue
            newest = self._carry_out(saved)
            waiting = waiting.difference(item.key for item in inbox)
            if newest is None or not (more or waiting):
                return Taken(newest, all=True)
        return Taken(packages.load(package_id), all=not waiting)

    def remove(self, head: Head) -> None:
        """Remove all that is stored of a package that cannot be folded any more, and give its slices back."""
        self._effects.release(head)
        self._effects.forget(head)

    def _is_due(self, head: Head) -> bool:
        return self._backend.clock.now() >= due_at(head, self._backend.policy)

    def _carry_out(self, head: Head) -> Head | None:
        """Carry out the effects of a head that this process saved, and fold the answers. Returns the newest head.

        If saving the answers loses the race, the answers are dropped: the winner carries out the same effects again,
        and gets answers of its own. Returns None if the package was removed.
        """
        while True:
            effects = pending(head, self._backend.policy)
            if any(isinstance(effect, Forget) for effect in effects):
                forgotten = self._effects.forget(head)
                return None if forgotten else self._backend.packages.load(head.package_id)
            found = [*(self._effects.answer(head, effect) for effect in effects), self._effects.withdraw(head)]
            answers = [answer for answer in found if answer is not None]
            if not answers:
                return head
            if all(self._can_wait(head, answer) for answer in answers):
                # If this process dies now, the head still shows that the chunks are to be sent. The next process then
                # sends them again, as if this one had died before it could save.
                self._sent[head.package_id] = answers
                return head
            saved = self._fold_and_save(head, [], answers)
            if saved is None:
                return self._backend.packages.load(head.package_id)
            head = saved

    def _can_wait(self, head: Head, answer: Event) -> bool:
        """Whether an answer may be folded with the next event, because it only says that this head's chunks were sent.

        An older chunk was sent before, by another process that did not record this in the head. So this process records
        it at once: otherwise each fold would send the chunk, and after five minutes the queue would no longer drop the
        copies. The first chunks of a package are recorded at once, too, if another process is going to fold the first
        results.
        """
        first = not head.pace.measured and self._backend.policy.saves_first_sent
        if first or not isinstance(answer, Sent):
            return False
        return all(generation == head.version for _, _, generation in answer.chunks)

    def _fold_and_save(self, head: Head, inbox: Sequence[InboxItem], others: Sequence[Event]) -> Head | None:
        """Fold events of the inbox and events that are not stored, once. Returns the head that this call has saved.

        Returns None if another process has saved a head first.
        """
        folded, results = self._fold_safely(head, inbox, [*self._sent.pop(head.package_id, []), *others])
        if not self._backend.packages.save(folded, look_at(folded, self._backend.policy), results):
            return None
        self._note_pause(folded)
        # Delete the events only now: if a process dies before this line, the events are folded again, which does no
        # harm. If the events were deleted before the save, a crash in between would lose them.
        if inbox:
            self._backend.packages.delete_events(head.package_id, [item.key for item in inbox])
        return folded

    def _fold_safely(self, head: Head, inbox: Sequence[InboxItem], others: Sequence[Event]) -> Folded:
        now, policy = self._backend.clock.now(), self._backend.policy
        events = [*(item.event or Broken(message=f"event {item.key} is unreadable") for item in inbox), *others]
        try:
            return fold(head, events, now, policy)
        except Exception as error:  # noqa: BLE001 - an event that cannot be folded would stop its package for good
            text = f"the master could not take in an event ({error!r}): report this with the package id"
            return fold(head, [Broken(message=text)], now, policy)


def parts(items: Sequence[Item], most_bytes: int) -> Iterator[Sequence[Item]]:
    """Divide events into parts, each of which is for one fold.

    A part has at most `most_bytes` of results (`fold_bytes` of the policy), or a single event.
    """
    part: list[Item] = []
    room = most_bytes
    for item in items:
        weight = _weight(item[1])
        room -= weight
        if part and room < 0:
            yield part
            part, room = [], most_bytes - weight
        part.append(item)
    if part:
        yield part


def _could_wait(items: Sequence[Item]) -> bool:
    """Whether these events are of a kind that may wait in an inbox: small publications and give-backs of workers.

    Large results do not wait, because to store them twice would cost more than a fold. The event of an idle worker does
    not wait, because this worker needs chunks.
    """
    small = sum(_weight(event) for _, event in items) <= LIGHT_BYTES
    return bool(items) and small and all(map(_is_late, (event for _, event in items)))


def _may_wait(items: Sequence[Item], head: Head, pause_s: float) -> bool:
    """Whether these events may wait in the inbox of this package.

    Idle workers wait for tasks that were given back, so these tasks must not wait long for the next fold. If the
    package's tasks end often, the next fold comes soon, and divides the tasks of several give-backs among the idle
    workers.
    """
    given_back = any(isinstance(event, GaveBack) for _, event in items)
    return _could_wait(items) and (not given_back or pacing.task_end_s(head) <= pause_s)


def _is_late(event: Event) -> bool:
    if isinstance(event, Published):
        return event.refused is None  # otherwise the package fails
    return isinstance(event, GaveBack)


def _weight(event: Event) -> int:
    return result_bytes(event.results) if isinstance(event, Published) else 0


def _busy(package_id: str) -> Unavailable:
    return Unavailable(f"package {package_id} is very busy: try again", retry_after_s=1.0)
