"""The ports: Protocol classes that state what the services need of the outside world. Adapters implement them.

One test suite checks all adapters.

Every call may raise an error although it took effect, and the caller may repeat it. Several processes may make the same
call at the same time. The method's docstring says what the call promises in these cases, unless a repeated call plainly
changes nothing.

A method of a store, a queue or a registry may raise errors of its adapter's storage, such as sqlite3.OperationalError
or botocore's ClientError. If the storage is too busy, the method may raise Unavailable. The section `Raises` of a
method names only other errors.
"""

from .account_store import AccountRecord, AccountStore, DayUsage, Reservation, UsagePart
from .blob_store import BlobStore
from .clock import Clock, Ids
from .fleet import Fleet, FleetSize
from .key_safe import KeySafe
from .package_store import RUNNING_FIGURES, AtWork, InboxItem, Opened, PackageStore, ResultPage, Running, Unreadable
from .task_queue import LARGEST_RECEIVES, Fit, Message, Needs, Sending, StaleAttempt, Stay, TaskQueue
from .task_roles import TaskRoles
from .worker_registry import WorkerRecord, WorkerRegistry

__all__ = [
    "LARGEST_RECEIVES",
    "RUNNING_FIGURES",
    "AccountRecord",
    "AccountStore",
    "AtWork",
    "BlobStore",
    "Clock",
    "DayUsage",
    "Fit",
    "Fleet",
    "FleetSize",
    "Ids",
    "InboxItem",
    "KeySafe",
    "Message",
    "Needs",
    "Opened",
    "PackageStore",
    "Reservation",
    "ResultPage",
    "Running",
    "Sending",
    "StaleAttempt",
    "Stay",
    "TaskQueue",
    "TaskRoles",
    "Unreadable",
    "UsagePart",
    "WorkerRecord",
    "WorkerRegistry",
]
