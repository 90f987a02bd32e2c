"""Errors for methods of `multiprocessing.Pool` that a pool does not have. They say what to write instead."""

from typing import TYPE_CHECKING, Any

_INSTEAD = {
    "imap": "pool.map(fn, xs), whose results can be read while tasks run; buffersize= bounds how many wait",
    "imap_unordered": "pool.map_unordered(fn, xs)",
    "apply": "pool.submit(fn, *args, **kwargs).result()",
    "apply_async": "pool.submit(fn, *args, **kwargs), which returns a future",
    "map_async": "pool.map(fn, xs), which returns at once, and read its results later",
    "starmap_async": "pool.starmap(fn, xs), which returns at once, and read its results later",
    "close": "pool.shutdown(wait=False), or use `with Pool() as pool:`",
    "join": "pool.shutdown(), which waits for the tasks, or use `with Pool() as pool:`",
    "terminate": "pool.shutdown(wait=False, cancel_futures=True), and results.cancel() for maps that run",
}


class FamiliarNames:
    """Raises an AttributeError if a program calls a method of `multiprocessing.Pool` that a pool does not have.

    The error names what to write instead.
    """

    if not TYPE_CHECKING:  # with this method, type checkers would accept any name

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            if name not in _INSTEAD:
                raise AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=self)
            # The error is made without `name=` and `obj=`, because with them Python would also suggest a similar name.
            raise AttributeError(
                f"{kind!r} object has no attribute {name!r}, as multiprocessing.Pool has: write {_INSTEAD[name]}"
            )
