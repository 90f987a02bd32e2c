"""Which of the agent's environment variables executors get."""

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final

_HARMLESS: Final = (
    "PATH", "LANG", "LANGUAGE", "LC_*", "TZ", "PYTHON*", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE", "*_NUM_THREADS", "OMP_*", "MKL_*", "KMP_*", "CUDA_*", "NVIDIA_*",
)  # fmt: skip
"""Variables that say how programs run here. Any other may hold a secret, such as a key or a proxy's password."""


def for_executors(environment: Mapping[str, str], *, shared: bool) -> dict[str, str]:
    """The environment of executors: in a shared pool only harmless variables, otherwise all but the agent's own."""
    if not shared:
        return {name: text for name, text in environment.items() if not name.startswith("CLOUDPAR_")}
    seen = {name: text for name, text in environment.items() if any(fnmatchcase(name, each) for each in _HARMLESS)}
    if "PYTHONPATH" in seen:
        seen["PYTHONPATH"] = _without_here(seen["PYTHONPATH"])
    return seen


def _without_here(path: str) -> str:
    """A PYTHONPATH that tasks may read: without the worker's working folder, which may be a user's home."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if os.path.normpath(entry) != os.curdir)
