from typing import Literal

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """One line of `cloudpar doctor`. "missing" says what could be better, "bad" what does not work."""

    what: str
    verdict: Literal["ok", "missing", "bad"]
    detail: str
