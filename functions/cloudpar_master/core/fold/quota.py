"""How a package requests and receives slices of its account's compute time."""

from cloudpar_master.core import quota
from cloudpar_master.core.events import QuotaGranted

from . import life
from .draft import Draft

ASK_AGAIN_S = 1.0
"""Seconds until a package requests a slice again, if other packages of its account hold all of the free compute
time."""

REQUESTS_PER_S = 20
"""About how many slices the waiting packages of one account may request in a second, all together. Without this bound,
an account with many waiting packages would keep the master busy, though it spends no compute time."""

USED_UP = "the account's compute time is used up: ask the operator to grant more (cloudpar account grant)"


def ask(draft: Draft) -> None:
    """Request a slice if the package needs one.

    The request stays in the head until it is answered, or the package ends.
    """
    head = draft.head
    if not head.quota.wanted_us:
        head.quota.wanted_us = quota.slice_wanted_us(head, draft.policy)


def receive(draft: Draft, event: QuotaGranted) -> None:
    """Apply the account's answer to the request for a slice."""
    head, own = draft.head, draft.head.quota
    # The number identifies repeated answers: if a slice counted twice, this package could use time that other packages
    # have reserved. After an answer of 0 the next request has the same number. A late copy of that answer is therefore
    # ignored only while no slice is requested.
    if head.life.ended or event.slice != own.next_slice or not (event.granted_us or own.wanted_us):
        return
    own.wanted_us = 0
    own.exhausted = event.granted_us == 0 and event.exhausted
    if event.granted_us:
        own.reserved_us += event.granted_us
        own.next_slice += 1
    elif not event.exhausted:
        own.ask_again_at = head.now + max(ASK_AGAIN_S, event.packages / REQUESTS_PER_S)
    elif own.reserve_spent:
        life.end(draft, "failed", "quota", USED_UP)
