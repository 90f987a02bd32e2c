from typing import Literal

import msgspec

State = Literal["ok", "warning", "missing", "failed"]


class Check(msgspec.Struct, frozen=True):
    """One finding.

    Attributes:
        name: What was looked at.
        state: "warning": it works, but not as well; "missing": this command can make it; "failed": not like this.
        found: What is there.
        fix: What to do about it.
    """

    name: str
    state: State
    found: str
    fix: str = ""
