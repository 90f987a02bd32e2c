"""Charges: each account is a bank account, from which the execution times of its tasks are deducted, each once."""

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from histories.books import EXPIRED, WHOLE, Books, Package, Seen, Violation
from histories.history import Call
from histories.results import seen_up_to


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
        known = [seen for seen in package.seen if seen.state != EXPIRED]
        for early, late in product(known, known):
            if early.call.before(late.call) and late.charged_us < early.charged_us:
                text = f"the charge of package {package.id} fell from {early.charged_us} to {late.charged_us}"
                yield Violation("charge is final", text, (early.call, late.call))
                break
        settled = [seen for seen in known if seen.settled]
        for first, other in product(settled[:1], known):
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
    for early, late in product(known, known):
        falls = early.account == late.account and late.spent_us < early.spent_us
        if falls and early.call.before(late.call):
            yield Violation("spent is the charges", f"{early.account} gets time back", (early.call, late.call))
            return
    for balance in known:
        own = [package for package in books.packages if package.account == balance.account]
        least = most = 0
        complete = True
        for package in own:
            least += max((seen.charged_us for seen in _settled(package) if seen.call.before(balance.call)), default=0)
            charge = _most(package, balance.call)
            complete = complete and charge is not None
            most += charge or 0
        if balance.spent_us < least or (complete and balance.spent_us > most):
            text = f"{balance.account} has spent {balance.spent_us}, but its packages {least} to {most}"
            yield Violation("spent is the charges", text, (balance.call,))


def _settled(package: Package) -> list[Seen]:
    return [seen for seen in package.seen if seen.settled and seen.state != EXPIRED]


def _most(package: Package, call: Call) -> int | None:
    """Return the largest charge that a package can have been settled with before the end of a call."""
    if all(call.before(start) for start in package.attempts):
        return 0
    unsettled = [read for read in package.kept if not read.status.settled and call.before(read.call)]
    if unsettled:
        return 0
    return max((seen.charged_us for seen in _settled(package)), default=None)


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
