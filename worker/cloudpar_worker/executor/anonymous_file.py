"""Files without a name: in memory or, if the system or a sandbox permits no files in memory, in a folder."""

import os
import tempfile


def anonymous_file(purpose: str, folder: str | None = None) -> int:
    """Make an anonymous file; return its descriptor, which programs that this process starts do not inherit.

    If the file cannot be in memory, it is in `folder`; None means the system's folder for temporary files.

    Raises:
        OSError: The system cannot create the file.
    """
    if hasattr(os, "memfd_create"):
        try:
            return os.memfd_create(f"cloudpar-{purpose}", os.MFD_CLOEXEC)
        except PermissionError:  # this process itself runs in a sandbox
            pass
    descriptor, path = tempfile.mkstemp(prefix=f"cloudpar-{purpose}-", dir=folder)
    os.unlink(path)
    return descriptor
