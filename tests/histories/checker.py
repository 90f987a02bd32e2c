"""Judges a history by docs/protocol.md alone: the rules know the page, and no code of the product.

A package is a queue with exactly one result a task, and an account is a bank account.
"""

from collections.abc import Iterable

from histories import answers, charges, results, starts, states
from histories.books import Books, Value, Violation
from histories.history import Call

RULES = [*starts.RULES, *states.RULES, *results.RULES, *charges.RULES, *answers.RULES]


def violations(calls: Iterable[Call], value: Value, *, complete: bool = True) -> list[Violation]:
    """Return all that contradicts the page.

    Args:
        value: The value of a task, as its result's `data`.
        complete: Whether the clients read each package until it had ended, so that one without an end is a violation.
    """
    books = Books(sorted(calls, key=lambda call: call.began_ns), value, complete=complete)
    return [violation for rule in RULES for violation in rule(books)]
