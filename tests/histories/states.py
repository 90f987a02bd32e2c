"""States: a package runs, ends once, and may then be deleted; counters only rise; no client, no cancel."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Final

from histories.books import EXPIRED, RUNNING, Books, Package, Progress, Seen, Violation, falls
from histories.history import Call

REASONS: Final = {
    "failed": {"quota", "expired", "python", "broken", "seal", "unreadable"},
    "cancelled": {"cancelled", "revoked", "acknowledged"},
}
COUNTERS: Final = ("done", "errors")


def _rank(seen: Seen) -> int:
    """Return how far the package was: a later answer never mentions a lower rank."""
    return {RUNNING: 0, EXPIRED: 2}.get(seen.state, 1)


def one_end(books: Books) -> Iterator[Violation]:
    """All answers agree on how a package ended."""
    for package in books.packages:
        ended = [seen for seen in package.seen if _rank(seen) == 1]
        for other in ended[1:]:
            if other.state != ended[0].state:
                text = f"package {package.id} ended as {ended[0].state} and as {other.state}"
                yield Violation("one end", text, (ended[0].call, other.call))
                break


def never_back(books: Books) -> Iterator[Violation]:
    """A package that has ended does not run again, and a deleted one does not return to awaits."""
    for package in books.packages:
        awaits = [seen for seen in package.seen if seen.call.route == "await_tasks"]
        ends = falls(package.seen, lambda seen: seen.call, lambda seen: min(_rank(seen), 1))
        for early, late in [*ends, *falls(awaits, lambda seen: seen.call, _rank)][:1]:
            text = f"package {package.id} was {early.state}, then {late.state}"
            yield Violation("never back", text, (early.call, late.call))


def counters_rise(books: Books) -> Iterator[Violation]:
    """Tasks that are done and errors that were counted stay so."""
    for package in books.packages:
        known = [(seen.call, seen.progress) for seen in package.seen if seen.progress is not None]
        for name in COUNTERS:
            for early, late in falls(known, lambda each: each[0], partial(_counter, name)):
                text = f"`{name}` of package {package.id} fell"
                yield Violation("counters rise", text, (early[0], late[0]))
                break
        for call, progress in known:
            if not (progress.errors <= progress.done <= progress.tasks == package.n):
                yield Violation("counters rise", f"impossible progress of package {package.id}", (call,))


def _counter(name: str, each: tuple[Call, Progress]) -> int:
    return int(getattr(each[1], name))


def cancel_is_final(books: Books) -> Iterator[Violation]:
    """After the answer to a cancel of the whole package, the package has ended."""
    for package in books.packages:
        whole = [call for call in package.cancels if call.ok and _is_whole(call.request)]
        for call in whole:
            if call.reply["state"] == RUNNING:
                yield Violation("cancel is final", f"package {package.id} still runs", (call,))
            for seen in package.seen:
                if seen.state == RUNNING and call.before(seen.call):
                    yield Violation("cancel is final", f"package {package.id} still runs", (call, seen.call))


def _is_whole(request: dict[str, object]) -> bool:
    return request.get("ranges") is None and not request.get("only_queued")


def acknowledge_deletes(books: Books) -> Iterator[Violation]:
    """After the answer to an acknowledgement, awaits say that the package was deleted."""
    for package in books.packages:
        for call, read in product(package.effective_acknowledgements(), package.reads):
            if call.ok and call.before(read.call) and read.status.state != EXPIRED:
                text = f"package {package.id} is {read.status.state}"
                yield Violation("acknowledge deletes", text, (call, read.call))


def no_end_without_cause(books: Books) -> Iterator[Violation]:
    """A package is cancelled or deleted only if a client requested it, and fails only for a documented reason."""
    for package in books.packages:
        for seen in package.seen:
            reasons = REASONS.get(seen.state)
            if reasons is not None and seen.reason is not None and seen.reason not in reasons:
                yield Violation("no end without cause", f"unknown reason {seen.reason}", (seen.call,))
            wanted = _wanted(package, seen)
            if wanted is not None and not any(not seen.call.before(cause) for cause in wanted):
                text = f"package {package.id} is {seen.state} without a request"
                yield Violation("no end without cause", text, (seen.call,))
                break


def _wanted(package: Package, seen: Seen) -> list[Call] | None:
    """Return the requests that can have brought a package into this state; None if it needs no request."""
    acknowledged = package.effective_acknowledgements()
    if seen.state == EXPIRED:
        return acknowledged
    if seen.state == "cancelled":
        allowed = {package.account, "admin"}
        return acknowledged + [call for call in package.effective_cancels() if call.account in allowed]
    return None


RULES = [one_end, never_back, counters_rise, cancel_is_final, acknowledge_deletes, no_end_without_cause]
