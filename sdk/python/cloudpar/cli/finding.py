from typing import Literal

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """One line of `cloudpar doctor`.

    "note" says what tasks have to do without, "missing" what could be better, and "bad" what does not work.
    """

    what: str
    verdict: Literal["ok", "note", "missing", "bad"]
    detail: str
