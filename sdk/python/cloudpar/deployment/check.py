from collections.abc import Callable
from typing import Literal

import msgspec

from .failures import AwsRefused

State = Literal["ok", "warning", "missing", "failed"]


class Check(msgspec.Struct, frozen=True):
    """The result of one check.

    Attributes:
        name: What was checked.
        state: "ok"; "warning" if the deployment works with a drawback, or AWS refused the request of this check;
            "missing" if this command can create what is missing; "failed" if the deployment cannot continue.
        found: What the check found.
        fix: Advice about the finding; empty if there is nothing to do.
    """

    name: str
    state: State
    found: str
    fix: str = ""


def unless_refused(name: str, check: Callable[[], Check]) -> Check:
    """Run a check. If AWS refuses its call, the result is a warning, so that the deployment can go on."""
    try:
        return check()
    except AwsRefused as error:
        return not_looked_up(name, error)


def not_looked_up(name: str, error: AwsRefused) -> Check:
    """Return the result of a check whose request AWS refused."""
    return Check(name, "warning", "could not be looked up", str(error))
