"""A backend of joblib, so that `joblib.Parallel` and the `n_jobs` of scikit-learn run on a pool.

Importing this module registers the backend under the name "cloudpar". joblib must be installed here and at the workers.

Example:
    >>> import joblib
    >>> from cloudpar import Pool
    >>> import cloudpar.joblib
    >>> with Pool(workers=2) as pool, joblib.parallel_config("cloudpar", pool=pool, n_jobs=-1):
    ...     joblib.Parallel()(joblib.delayed(pow)(x, 2) for x in range(5))
    [0, 1, 4, 9, 16]
"""

from joblib.parallel import register_parallel_backend

from .backend import CloudparBackend

__all__ = ["NAME", "CloudparBackend"]

NAME = "cloudpar"

register_parallel_backend(NAME, CloudparBackend)
