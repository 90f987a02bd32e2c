"""Starting: one package a key, none for a refused request, and none that is forgotten or shown to a stranger."""

from collections import defaultdict
from collections.abc import Iterator

from histories.books import Books, Seen, Violation
from histories.history import Call

LISTED = 1_000
"""Packages in one list at most."""


def _by_key(books: Books) -> dict[tuple[str, str], list[Call]]:
    found: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in books.to("start_tasks"):
        found[call.account, call.request["idempotency_key"]].append(call)
    return found


def one_package_a_key(books: Books) -> Iterator[Violation]:
    """The same key names the same package, and different keys different ones."""
    keys: dict[str, tuple[tuple[str, str], Call]] = {}
    for key, calls in _by_key(books).items():
        started = [call for call in calls if call.ok]
        for call in started[1:]:
            if call.reply["package_id"] != started[0].reply["package_id"]:
                yield Violation("one package a key", f"the key {key[1]} has two packages", (started[0], call))
        for call in started:
            first, other = keys.setdefault(call.reply["package_id"], (key, call))
            if first != key:
                yield Violation("one package a key", f"the keys {first[1]} and {key[1]} share one", (other, call))


def _body(call: Call) -> dict[str, object]:
    return {name: each for name, each in call.request.items() if name != "session"}


def one_body_a_key(books: Books) -> Iterator[Violation]:
    """Only one body is accepted for a key, and a conflict needs two bodies."""
    for key, calls in _by_key(books).items():
        started = [call for call in calls if call.ok]
        for call in started[1:]:
            if _body(call) != _body(started[0]):
                yield Violation("one body a key", f"two bodies were accepted for {key[1]}", (started[0], call))
        for call in calls:
            conflict = call.status == 409 and call.reply["code"] == "idempotency_conflict"
            # Only a request that may have reached the master earlier can have taken the key.
            rivals = [other for other in calls if _body(other) != _body(call) and not call.before(other)]
            if conflict and all(other.refused for other in rivals):
                yield Violation("one body a key", f"no other body can have the key {key[1]}", (call,))


def never_forgotten(books: Books) -> Iterator[Violation]:
    """A package whose start was answered is found by its account from then on."""
    for package in books.packages:
        answered = [call for call in package.starts if call.ended_ns is not None]
        first = min(answered, key=lambda call: call.ended_ns or 0)
        lost = [call for call in package.cancels if call.status == 404]
        for call in [*package.lacking, *lost]:
            if call.account == package.account and first.before(call):
                yield Violation("never forgotten", f"package {package.id} is unknown", (first, call))


def listed(books: Books) -> Iterator[Violation]:
    """A list has each package that was started and not acknowledged."""
    for call in books.to("list_packages"):
        if not call.ok or len(call.reply["packages"]) >= call.request.get("limit", 100):
            continue
        has = {summary["package_id"] for summary in call.reply["packages"]}
        for package in books.packages:
            may_be_deleted = any(not call.before(each) for each in package.effective_acknowledgements())
            before = [start for start in package.starts if start.before(call)]
            if before and not may_be_deleted and package.account == call.account and package.id not in has:
                yield Violation("listed", f"the list lacks package {package.id}", (before[0], call))


def none_without_a_start(books: Books) -> Iterator[Violation]:
    """Each package has a start that was answered, or whose answer was lost."""
    unknown = [package for package in books.strangers if package.seen]
    for account in {call.account for package in unknown for call in _mentions(package.seen)}:
        own = [package for package in unknown if package.seen[0].call.account == account]
        lost = {
            key for (owner, key), calls in _by_key(books).items()
            if owner == account and not any(call.ok for call in calls) and not all(call.refused for call in calls)
        }  # fmt: skip
        if len(own) > len(lost):
            ids = ", ".join(package.id for package in own)
            yield Violation("none without a start", f"no start made {ids}", (own[0].seen[0].call,))


def _mentions(seen: list[Seen]) -> Iterator[Call]:
    return (each.call for each in seen)


def private(books: Books) -> Iterator[Violation]:
    """No other account sees a package."""
    for package in books.packages:
        for seen in package.seen:
            if seen.call.account not in {package.account, "admin"}:
                yield Violation("private", f"package {package.id} is of {package.account}", (seen.call,))


RULES = [one_package_a_key, one_body_a_key, never_forgotten, listed, none_without_a_start, private]
