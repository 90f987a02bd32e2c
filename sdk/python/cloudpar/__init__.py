"""A distributed thread pool: `Pool().map(f, xs)` runs on this machine's cores, or on a fleet of your own.

Example:
    >>> from cloudpar import Pool
    >>> with Pool(workers=2) as pool:
    ...     print(list(pool.map(lambda x: x * x, range(5))))
    [0, 1, 4, 9, 16]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cloudpar_protocol import __version__

from . import errors

if TYPE_CHECKING:
    from .attachment import Attachment as Attachment
    from .attachment import Outcome as Outcome
    from .future import TaskFuture as TaskFuture
    from .map_results import MapResults as MapResults
    from .pool import Pool as Pool
    from .references import reference as reference
    from .report import Report as Report
    from .snapshots import snapshot as snapshot

__all__ = [
    "Attachment",
    "MapResults",
    "Outcome",
    "Pool",
    "Report",
    "TaskFuture",
    "__version__",
    "errors",
    "reference",
    "snapshot",
]

_HOMES = {
    "Attachment": "attachment",
    "MapResults": "map_results",
    "Outcome": "attachment",
    "Pool": "pool",
    "Report": "report",
    "TaskFuture": "future",
    "reference": "references",
    "snapshot": "snapshots",
}


def __getattr__(name: str) -> Any:
    # Some of these names need modules for HTTP and pickling. A name's module is imported only when the program first
    # uses the name, so that importing this package is fast.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
