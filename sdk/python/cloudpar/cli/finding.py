from typing import Literal

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """One line of `cloudpar doctor`.

    "note" says what tasks go without, "missing" what could be better, "bad" what does not work.
    """

    what: str
    verdict: Literal["ok", "note", "missing", "bad"]
    detail: str
