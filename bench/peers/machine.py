"""What the figures depend on: the machine, and the versions of everything."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version

import psutil

from cloudpar_protocol.version import __version__

from .engines import OURS, PEERS


def machine() -> dict[str, object]:
    """Describe this machine."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def versions() -> dict[str, str | None]:
    """Return the version of the pool, and of the packages of all engines; None for a package that is not installed."""
    found: dict[str, str | None] = {OURS: __version__}
    for package in sorted({peer.package for peer in PEERS if peer.package} | {"numpy"}):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found
