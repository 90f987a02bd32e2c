from typing import Literal

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """One line of `cloudpar doctor`.

    The verdict "note" means that something works, but forbids something that tasks may need. "missing" means that
    something is absent or could not be tried, and that the rest works without it. "bad" means that something does not
    work.
    """

    what: str
    verdict: Literal["ok", "note", "missing", "bad"]
    detail: str
