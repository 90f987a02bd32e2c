from typing import Literal

import msgspec

State = Literal["ok", "warning", "missing", "failed"]


class Check(msgspec.Struct, frozen=True):
    """The result of one check.

    Attributes:
        name: What was checked.
        state: "ok"; "warning": it works with a drawback, or AWS refused the request of this check; "missing": this
            command can create it; "failed": the deployment cannot go on.
        found: What the check found.
        fix: What to do about it; empty if nothing.
    """

    name: str
    state: State
    found: str
    fix: str = ""
