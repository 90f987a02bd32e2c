"""Files without a name, in memory where that may be: where tasks of a shared pool are confined, it may not."""

import os
import tempfile


def anonymous_file(purpose: str, folder: str | None = None) -> int:
    """A descriptor of a new one, which no program started from here inherits."""
    if hasattr(os, "memfd_create"):
        try:
            return os.memfd_create(f"cloudpar-{purpose}", os.MFD_CLOEXEC)
        except PermissionError:  # this is itself in a task
            pass
    descriptor, path = tempfile.mkstemp(prefix=f"cloudpar-{purpose}-", dir=folder)
    os.unlink(path)  # noqa: PTH108 - pathlib would be imported for this alone
    return descriptor
