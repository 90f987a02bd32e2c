"""Whether a package runs, how it ended, and what remains of it."""

from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from cloudpar_protocol.payloads import Unfit

State = Literal["running", "completed", "failed", "cancelled", "expired"]

BLOB_BYTES = 64 * 1024
"""A blob counts as this many bytes beside its size, since removing it costs calls."""

MESSAGE_BYTES = 900
"""Bytes of a head's message. The rest of a longer one is cut off."""

SET_ASIDE = 4
HOST_BYTES, LACKS_BYTES = 48, 160
"""How many workers that cannot run a package its head names, and how much of each name and reason it keeps."""


class Life(Struct, kw_only=True):
    """From start to tombstone.

    Attributes:
        state: "running" until the package ends. An ended package that no client acknowledges becomes "expired".
        reason, message: Why it ended, for programs and for people.
        ended_at: When it ended.
        settle_at: When an ended package is settled, even if stopped tasks have not reported their time.
        settled: The account has been charged, and has the rest of the slices back.
        acknowledged_at: When the client said that it needs nothing more.
        deleted_at: When data and results were removed. What is left is a tombstone.
        stored_bytes: About how many bytes the data, the results and other uploads of workers take.
        set_aside: The first workers that could not run the package.
        stranded_at: Since when no live worker can run it, as far as masters have seen; None: one can, or no master
            looked.
        run_anyway: No worker has all that it needs: workers run its tasks nevertheless, and report how they fail.
    """

    state: State = "running"
    reason: str | None = None
    message: str | None = None
    ended_at: float | None = None
    settle_at: float | None = None
    settled: bool = False
    acknowledged_at: float | None = None
    deleted_at: float | None = None
    stored_bytes: int = 0
    set_aside: list[Unfit] = []
    stranded_at: float | None = None
    run_anyway: bool = field(name="anyhow", default=False)

    def draft(self) -> "Life":
        """A copy with lists of its own, for a fold to change."""
        return replace(self, set_aside=list(self.set_aside))

    @property
    def ended(self) -> bool:
        """Whether no task of this package is handed out any more."""
        return self.state != "running"

    @property
    def unneeded(self) -> bool:
        """Whether the client has all results, or has not fetched them in time."""
        return self.settled and (self.acknowledged_at is not None or self.state == "expired")


def cut(text: str, size_bytes: int) -> str:
    """Return the longest start of a text that has at most this many bytes as UTF-8.

    >>> cut("naïve", 3)
    'na'
    """
    return text.encode(errors="replace")[:size_bytes].decode(errors="ignore")
