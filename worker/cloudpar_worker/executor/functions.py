"""The executor's cache of functions, by the hash of their task code."""

import gc
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from cloudpar_protocol.payloads import Codec

from . import references
from .failures import add_mend

CACHED_FUNCTIONS: Final = 16
"""The agent keeps the same list of hashes for each executor: it knows when to send the code along."""

_COLLECT_EVERY = 64


class FunctionCache:
    """The functions last used. Code that cannot be loaded is kept as its exception."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, Callable[..., Any] | BaseException] = OrderedDict()
        self._dropped = 0

    def load(self, code_hash: str, code: bytes | None, codec: Codec) -> Callable[..., Any]:
        """The function of that hash, unpickled from `code` (with codec "msgpack": imported by name) unless it is here.

        Raises:
            BaseException: Whatever the unpickling or the import raised; it names the mend.
        """
        entry = self._entries.get(code_hash)
        if entry is None:
            try:
                entry = _load(code or b"", codec)
                if not callable(entry):
                    entry = TypeError(f"the task code is a {type(entry).__name__}, not callable: send a function")
            except BaseException as error:  # noqa: BLE001 - importing task code may raise anything
                if codec == "pickle":
                    add_mend(error, "the task code")
                entry = error
            self._entries[code_hash] = entry
            if len(self._entries) > CACHED_FUNCTIONS:
                self._entries.popitem(last=False)
                self._forget()
        else:
            self._entries.move_to_end(code_hash)
        if isinstance(entry, BaseException):
            raise entry.with_traceback(None)
        return entry

    def _forget(self) -> None:
        # A function and its globals refer to each other: only the collector frees them.
        self._dropped += 1
        if self._dropped % _COLLECT_EVERY == 0:
            gc.collect()


def _load(code: bytes, codec: Codec) -> Any:
    return references.find(code.decode()) if codec == "msgpack" else pickle.loads(code)
