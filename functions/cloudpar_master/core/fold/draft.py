"""The draft of a head that one fold works on."""

from msgspec import Struct

from cloudpar_master.core.head import Head
from cloudpar_master.core.policy import Policy
from cloudpar_protocol.payloads import TaskResult


class Draft(Struct):
    """What a fold changes: a copy of the head, and the results to commit.

    Attributes:
        head: A copy of the head that was loaded, with the next version.
        policy: The settings of the deployment.
        results: The results that were committed so far. They are saved in one page together with the head, or not at
            all.
    """

    head: Head
    policy: Policy
    results: list[TaskResult] = []


def draft_of(head: Head, policy: Policy, now: float) -> Draft:
    """Make a draft of the next version of a head."""
    draft = Draft(head.draft(), policy)
    draft.head.version += 1
    # Clocks of masters differ. If a head's time could go back, masters would disagree about whether a deadline has
    # passed.
    draft.head.now = max(now, head.now)
    return draft
