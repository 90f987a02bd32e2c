"""One package: its spec, which no fold changes, and its state."""

from msgspec import Raw, Struct
from msgspec.structs import replace

from cloudpar_protocol.client_messages import PackageState, Progress, StartTasks
from cloudpar_protocol.payloads import BlobData, Codec, InlineData, Range, TaskData, Unfit

from .life import BLOB_BYTES, Life
from .pace import Pace
from .quota import Quota
from .tasks import Tasks

SCHEMA = 1
"""The version of the format of heads. A master that loads a head with a higher version than its own only appends events
to the inbox.

A release that only adds fields to the groups of a head (Tasks, Quota, Pace, Life) need not raise SCHEMA if a fold of an
older release may leave these fields as they are: stored.py keeps them. Any other change of what is stored needs another
number. A test notices each change (tests/master/core/head/test_shapes.py)."""

UNREADABLE = 1 << 62
"""The version of the format that a stand-in has (Head.stand_in). It is above the version of every release."""

PACKAGE_BYTES = 4 * 1024
"""How many bytes the records of a package add to the bytes that its account stores, in addition to the payloads. The
records stay until the package is forgotten."""

HEAD_BYTES = 396_000
"""Every stored head is smaller than this many bytes, because every list in a head is bounded. An item of DynamoDB may
have at most 400 KB. The head of a package on 800 executors has about 16 KB, on 10,000 executors about 180 KB."""


class Spec(Struct, frozen=True, kw_only=True):
    """The part of a package that no fold changes. It is written with the first head, and readers may cache it.

    Only the effect Delete changes it: afterwards the spec is as `freed` returns it.

    Attributes:
        request_hash: SHA-256 of the StartTasks body without its session. With this hash the master distinguishes a
            retry from a different request with the same idempotency key.
    """

    package_id: str
    account_id: str
    request_hash: str
    start: StartTasks
    started_at: float

    def freed(self) -> "Spec":
        """Return the spec of a deleted package: without task data and inline task code."""
        code = self.start.code
        left = code if code.inline is None else replace(code, inline=b"")
        return replace(self, start=replace(self.start, code=left, data=InlineData([])))


class Identity(Struct, kw_only=True):
    """The fields of a head that are in none of its groups.

    Attributes:
        version: The number of the head. Each fold adds one to it. A fold's head is saved only if the stored head still
            has the version that the fold has read. If two masters fold the same head, the slower master therefore loses
            the race and reads the head again.
        python: The version of Python that the tasks need; "": any.
        page: The version of the last head that committed results; 0: no head did so.
        data_bytes: The size of the task data in bytes.
        code_bytes: The size of the inline task code in bytes.
        depth: The nesting depth that the request names. Packages of earlier releases have 0.
        uploaded_bytes: The part of `Life.stored_bytes` that is uploaded task data. The master counts this part among
            the account's uploads.
        now: The latest time of all folds. It never goes back, even if the clocks of the masters differ.
    """

    schema: int = SCHEMA
    package_id: str
    account_id: str
    name: str = ""
    codec: Codec = "pickle"
    python: str = ""
    version: int = 0
    page: int = 0
    data_bytes: int = 0
    code_bytes: int = 0
    uploaded_bytes: int = 0
    depth: int = 0
    started_at: float
    now: float


def size_of(data: TaskData) -> int:
    """Return the size of task data in bytes; 0 for a range."""
    if isinstance(data, BlobData):
        return data.blob.size
    return data.size if isinstance(data, InlineData) else 0


class Head(Identity, kw_only=True):
    """The state of one package, in groups. stored.py encodes and decodes it.

    Attributes:
        later: The stored fields that only later releases know, by name. A fold leaves them as they are.
    """

    tasks: Tasks
    quota: Quota
    pace: Pace
    life: Life
    later: dict[str, Raw] = {}

    @classmethod
    def first(cls, spec: Spec, window: int) -> "Head":
        """Make the head of a package to which nothing has happened yet.

        Args:
            spec: The package's request and account.
            window: The number of chunks that the package may have open; 0: the package starts closed.
        """
        start, data_bytes = spec.start, size_of(spec.start.data)
        uploaded_bytes = data_bytes + BLOB_BYTES if isinstance(start.data, BlobData) else 0
        return cls(
            package_id=spec.package_id,
            account_id=spec.account_id,
            name=start.name,
            codec=start.codec,
            python=start.python if start.codec == "pickle" else "",
            data_bytes=data_bytes,
            code_bytes=len(start.code.inline or b""),
            uploaded_bytes=uploaded_bytes,
            depth=start.depth,
            started_at=spec.started_at,
            now=spec.started_at,
            tasks=Tasks(count=start.n, chunksize=start.chunksize),
            quota=Quota(),
            pace=Pace(window=window),
            life=Life(stored_bytes=uploaded_bytes or data_bytes),
        )

    @classmethod
    def stand_in(cls, package_id: str, account_id: str, started_at: float, version: int, message: str) -> "Head":
        """Make a replacement for a stored head that cannot be read.

        The replacement is a failed package without tasks. So each loop over packages goes on with the other packages,
        workers stop the tasks, and the owner and the operator see the message. The replacement is never saved: the
        stored head stays as it is.
        """
        return cls(
            schema=UNREADABLE,
            package_id=package_id,
            account_id=account_id,
            version=version,
            started_at=started_at,
            now=started_at,
            tasks=Tasks(count=0),
            quota=Quota(),
            pace=Pace(window=0),
            life=Life(state="failed", reason="unreadable", message=message),
        )

    @property
    def foreign(self) -> bool:
        """Whether this master must not fold the head: a newer release has written it, or it cannot be read."""
        return self.schema > SCHEMA

    @property
    def damaged(self) -> bool:
        """Whether this is the stand-in of a head that cannot be read."""
        return self.schema == UNREADABLE

    def draft(self) -> "Head":
        """Return a copy that a fold may change. The original stays as it was loaded."""
        return replace(
            self,
            tasks=self.tasks.draft(),
            quota=self.quota.draft(),
            pace=self.pace.draft(),
            life=self.life.draft(),
        )

    @property
    def billing_id(self) -> str:
        """The id under which the account is charged: the package's id and its start time.

        If a client uses an idempotency key again after the master has forgotten the package, the new package has the
        same package id. The account may still remember the charge of the first package; under the same id, the second
        package would not be charged.
        """
        return f"{self.package_id}@{round(self.started_at * 1000)}"

    @property
    def counted_bytes(self) -> int:
        """The bytes that the package adds to its account's stored bytes. Uploads are counted elsewhere."""
        if self.life.deleted_at is not None:
            return PACKAGE_BYTES
        return PACKAGE_BYTES + self.code_bytes + max(0, self.life.stored_bytes - self.uploaded_bytes)

    @property
    def payload_bytes(self) -> int:
        """The size of the inline task code, the task data and the results, plus BLOB_BYTES for each blob."""
        return self.code_bytes + self.life.stored_bytes

    @property
    def uncut(self) -> int:
        """The number of tasks that are in no chunk yet, cancelled ones included; 0 if the package has ended."""
        return 0 if self.life.ended else self.tasks.count - self.tasks.cursor

    @property
    def cuttable(self) -> bool:
        """Whether the master can cut chunks of this package for idle executors.

        The master cannot cut while the package has spent its reserve and may not request compute time yet. As soon as
        the package may request some, the timer folds it. If packages without a reserve were cuttable, those of one
        account could hide the packages of all other accounts from idle workers.
        """
        return self.uncut > 0 and not (self.quota.reserve_spent and self.quota.ask_again_at > self.now)

    @property
    def unfinished(self) -> list[Range]:
        """The tasks of a running package that have no result.

        Cancelled tasks are included only if they were in no chunk.
        """
        tasks = self.tasks
        opened = [] if self.life.ended else [(each.start, each.end) for each in tasks.open]
        return [*opened, (tasks.cursor, tasks.count)] if self.uncut else opened

    @property
    def client_state(self) -> PackageState:
        """The state as await_tasks reports it: `life.state`, or "error" for a completed package with failed tasks."""
        return "error" if self.life.state == "completed" and self.tasks.errors else self.life.state

    @property
    def client_set_aside(self) -> list[Unfit]:
        """The workers that are set aside, as await_tasks reports them.

        If each live worker lacks something, the workers run the tasks nevertheless (`run_anyway`). Then the list is
        empty, because the errors of the tasks say what the workers lack.
        """
        return [] if self.life.run_anyway else self.life.set_aside

    def progress(self) -> Progress:
        """Return how far the package is, for the client."""
        tasks, pace = self.tasks, self.pace
        return Progress(
            tasks=tasks.count,
            done=tasks.done,
            errors=tasks.errors,
            executors=pace.executors,
            charged_us=self.quota.charged_us,
            mean_us=round(pace.mean_us),
            execute_us=pace.execute_us,
            retrieve_us=pace.retrieve_us,
            publish_us=pace.publish_us,
        )
