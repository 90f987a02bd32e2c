from typing import Literal

import msgspec

State = Literal["ok", "warning", "missing", "failed"]


class Check(msgspec.Struct, frozen=True):
    """The result of one check.

    Attributes:
        name: What was checked.
        state: "ok"; "warning" if the deployment works with a drawback, or AWS refused the request of this check;
            "missing" if this command can create what is missing; "failed" if the deployment cannot continue.
        found: What the check found.
        fix: What to do about the finding; empty if nothing.
    """

    name: str
    state: State
    found: str
    fix: str = ""
