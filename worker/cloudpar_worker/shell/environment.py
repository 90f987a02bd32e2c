"""What of the agent's environment executors see."""

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final

_HARMLESS: Final = (
    "PATH", "LANG", "LANGUAGE", "LC_*", "TZ", "PYTHON*", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE", "*_NUM_THREADS", "OMP_*", "MKL_*", "KMP_*", "CUDA_*", "NVIDIA_*",
)  # fmt: skip
"""What says how programs run here. All else may be somebody's key, a proxy's address with its password, too."""


def for_executors(environment: Mapping[str, str], *, shared: bool) -> dict[str, str]:
    """In a shared pool only what is known to be harmless; elsewhere all that is not ours."""
    if not shared:
        return {name: text for name, text in environment.items() if not name.startswith("CLOUDPAR_")}
    seen = {name: text for name, text in environment.items() if any(fnmatchcase(name, each) for each in _HARMLESS)}
    if "PYTHONPATH" in seen:
        seen["PYTHONPATH"] = _without_here(seen["PYTHONPATH"])
    return seen


def _without_here(path: str) -> str:
    """Where Python looks for modules tasks may read: not the worker's working folder, which may be somebody's home."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if os.path.normpath(entry) != os.curdir)
