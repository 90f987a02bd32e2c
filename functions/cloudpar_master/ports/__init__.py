"""What the services need of the outside world, as Protocol classes that adapters implement.

One test suite checks all adapters.

Every call may fail after it took effect, and may be repeated. Several processes may make the same call at the same
time. Each method's docstring says what the call promises then.
"""

from .account_store import AccountRecord, AccountStore, Reservation
from .blob_store import BlobStore
from .clock import Clock, Ids
from .fleet import Fleet
from .key_safe import KeySafe
from .package_store import RUNNING_FIGURES, InboxItem, Opened, PackageStore, ResultPage, Running
from .task_queue import LARGEST_RECEIVES, Fit, Message, Needs, Sending, StaleAttempt, TaskQueue
from .worker_registry import WorkerRecord, WorkerRegistry

__all__ = [
    "LARGEST_RECEIVES",
    "RUNNING_FIGURES",
    "AccountRecord",
    "AccountStore",
    "BlobStore",
    "Clock",
    "Fit",
    "Fleet",
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
    "TaskQueue",
    "WorkerRecord",
    "WorkerRegistry",
]
