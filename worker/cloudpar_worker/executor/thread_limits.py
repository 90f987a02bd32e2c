"""Limits how many threads numeric libraries start in one task.

OpenBLAS, MKL, OpenMP, Numexpr, Polars and others start a thread for each core. A worker already has an executor for
each core. Without a limit n executors would run n * n threads, and each task could take many times as long. These
libraries read environment variables when they are loaded, so the variables are set before any task code runs.
"""

from collections.abc import Mapping
from typing import Final

DEFAULT_THREADS: Final = 1
"""The limit if neither the worker, the package nor the environment sets a limit."""
VARIABLES: Final = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
    "OPENCV_FOR_THREADS_NUM",
)
"""The variables that are set. PyTorch, PyArrow, scikit-learn, LightGBM and XGBoost read OMP_NUM_THREADS."""


def thread_variables(environment: Mapping[str, str], threads: int | None) -> dict[str, str]:
    """Return the environment variables that limit threads, for all executors of a worker or for one executor.

    Libraries that are already loaded ignore changes of these variables.

    `threads` is the limit of the worker or of the package, and all variables get this value. If `threads` is None,
    variables that are set in `environment` stay. The other variables get the first number in OMP_NUM_THREADS, because
    most libraries fall back to this variable themselves. If OMP_NUM_THREADS has no number, they get DEFAULT_THREADS.

    >>> thread_variables({}, 2)["MKL_NUM_THREADS"]
    '2'
    >>> found = thread_variables({"OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "3"}, None)
    >>> found["OMP_NUM_THREADS"], found["MKL_NUM_THREADS"], found["POLARS_MAX_THREADS"]
    ('4', '3', '4')
    """
    if threads is not None:
        return dict.fromkeys(VARIABLES, str(threads))
    default = _first_level(environment.get("OMP_NUM_THREADS", "")) or str(DEFAULT_THREADS)
    return {name: environment.get(name) or default for name in VARIABLES}


def _first_level(text: str) -> str:
    """Return the first number of OMP_NUM_THREADS, which may list a number for each nesting level, such as "4,2".

    Return "" if the text does not start with a number above 0.
    """
    first = text.partition(",")[0].strip()
    return first if first.isdecimal() and int(first) else ""
