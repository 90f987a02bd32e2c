"""Whether a package runs, how it ended, and what remains of it."""

from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from cloudpar_protocol.payloads import Unfit

State = Literal["running", "completed", "failed", "cancelled", "expired"]

BLOB_BYTES = 64 * 1024
"""How many bytes a blob adds to `stored_bytes`, in addition to its size. They lift a package with a blob above the
`kept_bytes` of AWS, so that the master deletes the blob and does not leave it to the removal of the tombstone."""

MESSAGE_BYTES = 900
"""How many bytes of its message a head keeps. The rest of a longer message is cut off."""

SET_ASIDE = 4
HOST_BYTES, LACKS_BYTES = 48, 160
"""A head names at most SET_ASIDE workers that cannot run the package. It keeps HOST_BYTES of each worker's host name,
and LACKS_BYTES of what the worker lacks."""


class Life(Struct, kw_only=True):
    """How far a package is between its start and its tombstone.

    Attributes:
        state: "running" until the package ends. An ended package that no client acknowledges becomes "expired".
        reason, message: Why it ended, for programs and for people.
        ended_at: When it ended.
        settle_at: When an ended package is settled, even if stopped tasks have not reported their time.
        settled: The account has been charged, and has the rest of the slices back.
        acknowledged_at: When the client said that it needs nothing more.
        deleted_at: When the package became a tombstone. Its data and results were removed then, or are so small that
            they are removed together with the tombstone.
        stored_bytes: About how many bytes the data, the results and other uploads of workers take.
        set_aside: The first workers that could not run the package.
        stranded_at: When a master first saw that no live worker has the package's Python. None: a worker has it, or no
            master has looked.
        run_anyway: No worker has all that the package needs. Workers run its tasks nevertheless, and the tasks' errors
            say what is missing.
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
        """A copy that a fold may change. It shares no list with the original."""
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
