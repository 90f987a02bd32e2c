"""Whether a package runs, how it ended, and what remains of it."""

from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from cloudpar_protocol.payloads import Unfit

State = Literal["running", "completed", "failed", "cancelled", "expired"]

BLOB_BYTES = 64 * 1024
"""Task data or a result in the blob store adds this many bytes to `stored_bytes`, in addition to its size. This number
is larger than `Policy.kept_bytes` on AWS, so the master deletes blobs there as soon as they are not needed any more."""

MESSAGE_BYTES = 900
"""How many bytes a head keeps of the message about the package's end. The rest of a longer message is cut off."""

SET_ASIDE = 4
HOST_BYTES, LACKS_BYTES = 48, 160
"""A head names at most SET_ASIDE workers that cannot run the package. It keeps HOST_BYTES of each worker's host name,
and LACKS_BYTES of what the worker lacks."""


class Life(Struct, kw_only=True):
    """How far a package is between its start and its tombstone.

    Attributes:
        state: "running" until the package ends. An ended package that no client acknowledges in time becomes "expired".
        reason, message: The reason of the package's end, as a word for programs and as a text for people.
        ended_at: When the package ended; None: it still runs.
        settle_at: The time until which the package waits for workers to report how long stopped tasks ran; None: it has
            not stopped any task.
        settled: Whether the account has been charged, and has got the rest of the slices back.
        acknowledged_at: When a client acknowledged the package; None: no client has done so.
        deleted_at: When the package became a tombstone; None: it is none yet. Its data and results were removed then,
            or are so small that they are removed together with the tombstone.
        stored_bytes: The approximate size of the task data, the results and the workers' uploads, plus BLOB_BYTES for
            each blob.
        set_aside: The first workers that could not run the package, at most SET_ASIDE.
        stranded_at: The time at which a master first saw that none of the live workers has the package's Python. None:
            no master has seen that, or a worker with this Python has come since then.
        run_anyway: Whether workers run the tasks although each of the live workers lacks something that the package
            needs. The tasks' errors then say what is missing.
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
        """Return a copy that a fold may change. It shares no list with the original."""
        return replace(self, set_aside=list(self.set_aside))

    @property
    def ended(self) -> bool:
        """Whether the package has ended: none of its tasks is handed out any more."""
        return self.state != "running"

    @property
    def unreadable(self) -> bool:
        """Whether clients get no results any more: a client has acknowledged the package, or it has expired.

        Results are deleted only after a head was saved in which this is True.
        """
        return self.acknowledged_at is not None or self.state == "expired"

    @property
    def unneeded(self) -> bool:
        """Whether the package is settled, and is either acknowledged or expired."""
        return self.settled and self.unreadable


def cut(text: str, size_bytes: int) -> str:
    """Return the longest start of a text that has at most this many bytes as UTF-8.

    A lone surrogate, which UTF-8 cannot encode, becomes a question mark.

    >>> cut("naïve", 3)
    'na'
    """
    return text.encode(errors="replace")[:size_bytes].decode(errors="ignore")
