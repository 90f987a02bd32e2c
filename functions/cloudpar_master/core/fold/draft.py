"""The work of one fold."""

from msgspec import Struct

from cloudpar_master.core.head import Head
from cloudpar_master.core.policy import Policy
from cloudpar_protocol.payloads import TaskResult


class Draft(Struct):
    """What a fold changes.

    Attributes:
        head: A copy of the head that was loaded.
        policy: Figures of the deployment.
        results: What was committed so far; saved as a page with the head, or not at all.
    """

    head: Head
    policy: Policy
    results: list[TaskResult] = []


def draft_of(head: Head, policy: Policy, now: float) -> Draft:
    """Make a draft of the next version of a head."""
    draft = Draft(head.draft(), policy)
    draft.head.version += 1
    # Clocks of masters differ. If time could go back, a package that has expired would run again for some of them.
    draft.head.now = max(now, head.now)
    return draft
