"""What is known of one package, in one small record that one writer at a time replaces."""

from typing import Annotated, Literal
from zlib import crc32

from msgspec import Meta, Struct
from msgspec.structs import replace

from cloudpar_protocol.client_messages import PackageState, Progress, StartTasks
from cloudpar_protocol.payloads import Codec, Range, Unfit

State = Literal["running", "completed", "failed", "cancelled", "expired"]

SCHEMA = 1
"""Raised when an older master could misread a head; such a master only appends (rule 15)."""

HEAD_BYTES = 16 * 1024
"""An encoded head is always smaller (rule 10); the bounds below see to it."""

ENTRIES = 560
"""Open pieces, cancelled ranges and stopping ranges together; outstanding.py sees to it."""

BLOB_BYTES = 64 * 1024
"""A blob counts for so much beside its size: it is worth the calls that remove it."""

FAILED_RANGES = 100
CANCELLED_RANGES = 200
FLEET = 64
MESSAGE_BYTES = 900
SET_ASIDE = 4
HOST_BYTES, LACKS_BYTES = 48, 160
"""How many workers that cannot run a package its head names, and how much of each name and reason it keeps."""


class Piece(Struct, frozen=True, array_like=True):
    """Tasks [start, end) that were cut into a chunk at head version `generation` and have no result yet.

    Attributes:
        sent: The chunk is known to be in the queue, or at a worker.
        losses: How many workers were lost with these tasks before somebody gave them back.
    """

    start: int
    end: int
    generation: int
    sent: bool = False
    losses: int = 0


class Member(Struct, frozen=True, array_like=True):
    """A worker that published lately."""

    executors: int
    seen_at: float


class Spec(Struct, frozen=True, kw_only=True):
    """What never changes of a package: written once with the first head, cached by whoever reads it.

    Attributes:
        request_hash: SHA-256 of the StartTasks body, to tell a retry from a second use of its key.
    """

    package_id: str
    account_id: str
    request_hash: Annotated[str, Meta(max_length=64)]
    start: StartTasks
    started_at: float


class Head(Struct, kw_only=True):
    """The state of one package.

    Tasks below `cursor` have been cut into chunks. Those in `open` have no result yet, all others below the cursor
    have; so the finished set needs no record of its own.

    Attributes:
        open: Outstanding pieces, sorted and disjoint. After a give-back or a late result a chunk may have several.
        cancelled: Tasks without a result because they were cancelled one by one.
        stopping: Tasks that ended without a result and may still run; their time is charged once, if it comes
            before `settle_at`.
        draining: Queued tasks are cancelled as they surface; what workers have goes on.
        done: Tasks with a result, or cancelled.
        used_us: The committed execution times. What is charged is never more than the quota.
        reserved_us: What the account has set aside for this package, in slices.
        slice, slice_us: Number of the next slice, and what is asked of it now (0: nothing).
        wall: The account had nothing left when last asked.
        fleet: The workers that published lately, by number_of.
        mean_us: How long a task takes, measured over the last ones.
        window: How many chunks may be open; changed by results of chunks cut at `window_since` or later. 0: closed.
        page: Version of the last head that committed results.
        data_bytes: What its task data takes.
        stored_bytes: About what its data and results take, and what else workers uploaded.
        now: The latest time that this head has seen; never goes back.
        python: The version of Python that its tasks need; "": any.
        set_aside: The first workers that could not run it.
        stranded_at: Since when no live worker can run it, as far as masters have seen; None: one can, or none looked.
        anyhow: No worker has what it needs: workers run its tasks all the same, and report how they fail.
    """

    schema: int = SCHEMA
    package_id: str
    account_id: str
    name: str = ""
    version: int = 0
    state: State = "running"
    reason: str | None = None
    message: str | None = None
    tasks: int
    chunksize: int | None = None
    codec: Codec = "pickle"
    cursor: int = 0
    open: list[Piece] = []
    cancelled: list[Range] = []
    stopping: list[Range] = []
    draining: bool = False
    done: int = 0
    errors: int = 0
    failed: list[Range] = []
    used_us: int = 0
    reserved_us: int = 0
    slice: int = 0
    slice_us: int = 0
    slice_at: float = 0.0
    wall: bool = False
    mean_us: float = 0.0
    measured: int = 0
    execute_us: int = 0
    retrieve_us: int = 0
    publish_us: int = 0
    fleet: dict[int, Member] = {}
    window: int
    window_since: int = 0
    page: int = 0
    data_bytes: int = 0
    stored_bytes: int = 0
    started_at: float
    now: float
    ended_at: float | None = None
    settle_at: float | None = None
    settled: bool = False
    acknowledged_at: float | None = None
    deleted_at: float | None = None
    python: str = ""
    set_aside: list[Unfit] = []
    stranded_at: float | None = None
    anyhow: bool = False

    def draft(self) -> "Head":
        """A copy that a fold may change: its lists are its own."""
        return replace(
            self,
            open=list(self.open),
            cancelled=list(self.cancelled),
            stopping=list(self.stopping),
            failed=list(self.failed),
            fleet=dict(self.fleet),
            set_aside=list(self.set_aside),
        )

    @property
    def debtor(self) -> str:
        """What its account knows it by: its id and its birth.

        A key that is used again once its package is forgotten makes the same package id, and accounts remember for
        longer what they charged.
        """
        return f"{self.package_id}@{round(self.started_at * 1000)}"

    @property
    def ended(self) -> bool:
        """No task of this package will be handed out any more."""
        return self.state != "running"

    @property
    def unneeded(self) -> bool:
        """Its client has its results, or never came for them."""
        return self.settled and (self.acknowledged_at is not None or self.state == "expired")

    @property
    def closed(self) -> bool:
        """Its account has enough at work; it waits, holding nothing, until executors idle (rule 14)."""
        return self.window == 0

    @property
    def uncut(self) -> int:
        """Tasks that are in no chunk yet."""
        return 0 if self.ended else self.tasks - self.cursor

    @property
    def unfinished(self) -> list[Range]:
        """Of a running package: the tasks that have no result and are not cancelled, and some cancelled ones."""
        pieces = [] if self.ended else [(piece.start, piece.end) for piece in self.open]
        return [*pieces, (self.cursor, self.tasks)] if self.uncut else pieces

    @property
    def unsent(self) -> list[Piece]:
        """The outbox: chunks that may not be in the queue yet."""
        return [piece for piece in self.open if not piece.sent]

    @property
    def room(self) -> int:
        """How many entries fit into the lists that grow with every splinter."""
        return ENTRIES - len(self.open) - len(self.cancelled) - len(self.stopping)

    @property
    def dry(self) -> bool:
        """All that was reserved is used: until there is more, nothing is cut, sent or handed out."""
        return self.used_us >= self.reserved_us

    @property
    def executors(self) -> int:
        """How many executors have published lately."""
        return sum(member.executors for member in self.fleet.values())

    @property
    def charged_us(self) -> int:
        """What the account pays, as far as it is known: the time used, up to what could be reserved for it."""
        return min(self.used_us, self.reserved_us)

    @property
    def client_state(self) -> PackageState:
        """The state as await_tasks names it."""
        return "error" if self.state == "completed" and self.errors else self.state

    def progress(self) -> Progress:
        """How far it is, for the client."""
        return Progress(
            tasks=self.tasks,
            done=self.done,
            errors=self.errors,
            executors=self.executors,
            charged_us=self.charged_us,
            mean_us=round(self.mean_us),
            execute_us=self.execute_us,
            retrieve_us=self.retrieve_us,
            publish_us=self.publish_us,
        )


def cut(text: str, size_bytes: int) -> str:
    """The start of a text that fits into so many bytes.

    >>> cut("naïve", 3)
    'na'
    """
    return text.encode(errors="replace")[:size_bytes].decode(errors="ignore")


def number_of(worker_id: str) -> int:
    """A worker in the fleet: 5 bytes, where its name may have 800. Two that share a number count as one."""
    return crc32(worker_id.encode())
