"""Keeps the executor's functions by the hash of their task code."""

import gc
import pickle
from collections.abc import Callable
from typing import Any, Final

from cloudpar_protocol.payloads import Codec

from . import references
from .code_cache import CodeCache
from .mapped_payload import Mapped

_COLLECT_FUNCTIONS: Final = 64
_COLLECT_BYTES: Final = 32 * 1024 * 1024
"""The garbage collector runs after this many functions have been dropped, or functions whose code together has this
many bytes.
"""

ENTER: Final = "enter_project_of_cloudpar"
"""The name of a method of task code that contains modules of the client's project. The method puts these modules into
`sys.modules` again, because a task of another project may have run meanwhile. It returns the function.
"""


class FunctionCache:
    """The functions that were used last. If task code cannot be loaded, the cache keeps the exception instead."""

    def __init__(self) -> None:
        self._entries: dict[str, Callable[..., Any] | BaseException] = {}
        self._codes: dict[str, bytes | Mapped] = {}
        self._cache = CodeCache()
        self._dropped = self._dropped_bytes = 0

    def take(self, code_hash: str, code: bytes | Mapped | None) -> None:
        """Record that a run of tasks has come. `code` is None if the agent knows that the function is here.

        Call this for each run, even if all tasks of the run were recalled, because the agent also records each run. If
        the executor recorded fewer runs, the two caches would differ, and the agent could omit code that the executor
        does not have.
        """
        if code is not None:
            self._codes[code_hash] = code
        size = len(code.data) if isinstance(code, Mapped) else len(code or b"")
        dropped = self._cache.use(code_hash, size)
        if dropped:
            self._drop(dropped)

    def load(self, code_hash: str, codec: Codec) -> Callable[..., Any]:
        """Return the function of a run. At its first use, unpickle it or (with codec "msgpack") import it by name.

        Raises:
            TypeError: The task code is not callable.
            BaseException: The unpickling, the import or the method ENTER raised this exception. A failed unpickling or
                import is not repeated: each later call for this code raises the same exception.
        """
        entry = self._entries.get(code_hash)
        if entry is None:
            try:
                entry = _load(self._codes.pop(code_hash), codec)
                if not callable(entry):
                    kind = type(entry).__name__
                    entry = TypeError(f"the task code is of type {kind} and not callable: send a function")
            except BaseException as error:
                entry = error
            self._entries[code_hash] = entry
        if isinstance(entry, BaseException):
            raise entry.with_traceback(None)
        enter = getattr(type(entry), ENTER, None)
        return entry if enter is None else enter(entry)

    def _drop(self, dropped: dict[str, int]) -> None:
        for code_hash in dropped:
            self._entries.pop(code_hash, None)
            self._codes.pop(code_hash, None)
        self._dropped += len(dropped)
        self._dropped_bytes += sum(dropped.values())
        if self._dropped >= _COLLECT_FUNCTIONS or self._dropped_bytes >= _COLLECT_BYTES:
            self._dropped = self._dropped_bytes = 0
            gc.collect()  # a function and its globals refer to each other, so only the collector frees them


def _load(code: bytes | Mapped, codec: Codec) -> Any:
    if isinstance(code, Mapped):
        return code.load()
    return references.find(code.decode()) if codec == "msgpack" else pickle.loads(code)
