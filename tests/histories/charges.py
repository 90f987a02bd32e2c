"""Charges: each account is a bank account, from which the execution times of its tasks are deducted, each once."""

from collections.abc import Iterator
from itertools import islice, product
from typing import Any, NamedTuple

from histories.books import WHOLE, Books, Package, Violation, falls
from histories.history import Call
from histories.results import seen_up_to

NEVER_NS = 2**63
"""After all instants of a history."""


class Balance(NamedTuple):
    """What an answer said about an account. Only operators see what is reserved."""

    call: Call
    account: str
    granted_us: int
    spent_us: int
    reserved_us: int | None = None


def balances(books: Books) -> Iterator[Balance]:
    """Yield what answers said about accounts."""
    for call in books.calls:
        if call.ok and call.route == "hello" and call.reply.get("account_id"):
            yield Balance(call, call.account, call.reply.get("granted_us", 0), call.reply.get("spent_us", 0))
        elif call.ok and call.route == "list_accounts":
            yield from (_balance(call, account) for account in call.reply["accounts"] if account["role"] == "user")
        elif call.ok and call.route in {"create_account", "grant_quota"}:
            yield _balance(call, call.reply["account"])


def _balance(call: Call, account: dict[str, Any]) -> Balance:
    return Balance(call, account["name"], account["granted_us"], account["spent_us"], account.get("reserved_us", 0))


def charge_is_final(books: Books) -> Iterator[Violation]:
    """A charge only rises, and not after the package is settled."""
    for package in books.packages:
        for early, late in islice(falls(package.seen, lambda seen: seen.call, lambda seen: seen.charged_us), 1):
            text = f"the charge of package {package.id} fell from {early.charged_us} to {late.charged_us}"
            yield Violation("charge is final", text, (early.call, late.call))
        awaits = [seen for seen in package.seen if seen.call.route == "await_tasks"]
        for early, late in islice(falls(awaits, lambda seen: seen.call, lambda seen: seen.settled), 1):
            yield Violation("charge is final", f"package {package.id} is not settled any more", (early.call, late.call))
        settled = [seen for seen in package.seen if seen.settled]
        for first, other in product(settled[:1], package.seen):
            changed = other.charged_us != first.charged_us
            if changed and (other.settled or first.call.before(other.call)):
                text = f"package {package.id} was charged {first.charged_us} and {other.charged_us}"
                yield Violation("charge is final", text, (first.call, other.call))
                break


def charge_is_the_sum(books: Books) -> Iterator[Violation]:
    """The final charge is the sum of the execution times, and of the times of tasks that were stopped."""
    spent = {balance.account for balance in balances(books) if balance.spent_us >= balance.granted_us}
    for package in books.packages:
        for read in package.ends():
            found, status = seen_up_to(package, read.status.cursor), read.status
            if found is None or not status.settled:
                continue
            charged_us, sum_us = status.progress.charged_us, sum(result.duration_us for result in found.values())
            # Nothing above the quota is charged. A package that completes first gets a reserve for all of its time.
            less = charged_us < sum_us and (status.state in WHOLE or package.account not in spent)
            # Without a cancel no task is stopped, except by a limit, and then its time is in its result.
            more = charged_us > sum_us and status.state in WHOLE and not package.effective_cancels()
            if less or more:
                text = f"package {package.id} is charged {charged_us} for {sum_us} of execution"
                yield Violation("charge is the sum", text, (read.call,))
                break


def quota_is_a_wall(books: Books) -> Iterator[Violation]:
    """What is spent and reserved is never more than what is granted."""
    for balance in balances(books):
        used_us = balance.spent_us + (balance.reserved_us or 0)
        if used_us > balance.granted_us:
            text = f"{balance.account} uses {used_us} of {balance.granted_us}"
            yield Violation("quota is a wall", text, (balance.call,))


def grants_are_kept(books: Books) -> Iterator[Violation]:
    """The quota is the sum of the grants: of each that was answered, and of no other, each once."""
    opened = {call.request["name"]: call for call in books.to("create_account") if call.ok}
    for balance in balances(books):
        if balance.account not in opened:
            continue
        account_id = opened[balance.account].reply["account"]["account_id"]
        grants = [call for call in books.to("grant_quota") if call.request["account_id"] == account_id]
        done = {call.request["idempotency_key"]: call for call in grants if call.ok and call.before(balance.call)}
        tried = {
            call.request["idempotency_key"]: call
            for call in grants if not call.refused and not balance.call.before(call)
        }  # fmt: skip
        first_us = int(opened[balance.account].request["quota_us"])
        least, most = (first_us + sum(call.request["quota_us"] for call in some.values()) for some in (done, tried))
        if not least <= balance.granted_us <= most:
            text = f"{balance.account} was granted {least} to {most}, not {balance.granted_us}"
            yield Violation("grants are kept", text, (balance.call, *tried.values()))


def spent_is_the_charges(books: Books) -> Iterator[Violation]:
    """An account has spent the final charges of its settled packages: of each that is known to be settled, once."""
    known = list(balances(books))
    for account in {balance.account for balance in known}:
        own = [balance for balance in known if balance.account == account]
        for early, late in islice(falls(own, lambda balance: balance.call, lambda balance: balance.spent_us), 1):
            yield Violation("spent is the charges", f"{account} gets time back", (early.call, late.call))
        settlements = [_settlement(package) for package in books.packages if package.account == account]
        for balance in own:
            began_ns, ended_ns = balance.call.began_ns, balance.call.ended_ns or 0
            least = sum(each.charged_us or 0 for each in settlements if each.latest_ns < began_ns)
            possible = [each.charged_us for each in settlements if each.earliest_ns <= ended_ns]
            most = None if None in possible else sum(charge or 0 for charge in possible)
            if balance.spent_us < least or (most is not None and balance.spent_us > most):
                text = f"{account} has spent {balance.spent_us}, but its packages {least} to {most}"
                yield Violation("spent is the charges", text, (balance.call,))


class Settlement(NamedTuple):
    """Between which instants a package was settled, and for which charge; None if no client saw that."""

    earliest_ns: int
    latest_ns: int
    charged_us: int | None


def _settlement(package: Package) -> Settlement:
    settled = [seen for seen in package.seen if seen.settled]
    # Before the first attempt to start it, and when an await still says otherwise, it is not settled.
    before = [call.began_ns for call in package.attempts][:1]
    before += [read.call.began_ns for read in package.reads if not read.status.settled]
    latest_ns = min((seen.call.ended_ns or NEVER_NS for seen in settled), default=NEVER_NS)
    return Settlement(max(before), latest_ns, settled[0].charged_us if settled else None)


def nothing_starts_without_quota(books: Books) -> Iterator[Violation]:
    """An account that has spent all of its quota starts no package."""
    for balance in balances(books):
        if balance.spent_us < balance.granted_us:
            continue
        grants = [call for call in books.to("grant_quota") if not call.refused and not call.before(balance.call)]
        for package in books.packages if not grants else []:
            new = all(balance.call.before(start) for start in package.attempts)
            if new and package.account == balance.account:
                text = f"{balance.account} has nothing left, and starts package {package.id}"
                yield Violation("nothing starts without quota", text, (balance.call, package.starts[0]))


RULES = [
    charge_is_final, charge_is_the_sum, quota_is_a_wall, grants_are_kept, spent_is_the_charges,
    nothing_starts_without_quota,
]  # fmt: skip
