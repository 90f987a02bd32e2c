"""What the services need of the outside world, as Protocol classes. Adapters implement them; one suite tests them all.

Every call may fail after it took effect, may be repeated, and may meet other processes that do the same. Each method's
docstring says what the call promises then.
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
