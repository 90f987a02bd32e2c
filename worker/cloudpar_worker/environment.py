"""What of the agent's environment executors see."""

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
    if shared:
        return {name: text for name, text in environment.items() if any(fnmatchcase(name, each) for each in _HARMLESS)}
    return {name: text for name, text in environment.items() if not name.startswith("CLOUDPAR_")}
