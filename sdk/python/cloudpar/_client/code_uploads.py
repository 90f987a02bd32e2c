"""Puts task code into a request: small code inline, larger code as an uploaded payload."""

import io
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

from cloudpar._serialization.blob import Blob
from cloudpar_protocol.limits import INLINE_CODE_BYTES
from cloudpar_protocol.payloads import BlobRef, TaskCode

from .connection import Connection
from .uploads import upload

if TYPE_CHECKING:
    from cloudpar._serialization.task_code import Code

REMEMBERED = 128
"""For how many functions the client remembers that the store has their code."""


class CodeUploads:
    """Uploads task code, and remembers what the store has. Any thread may use it.

    Otherwise each package would need one more request, because only the master knows whether the store has its code.
    The memory may be wrong, because a store removes code that was not used for a long time. The master then refuses to
    start the package, and the client has to `forget` the code and to upload it again.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = Lock()
        self._stored: OrderedDict[str, BlobRef] = OrderedDict()

    def task_code(self, code: "Code") -> TaskCode:
        """Return task code as a request contains it. Large code is uploaded unless the store has it.

        Raises like `upload`.
        """
        if code.reference is not None:
            return TaskCode(hash=code.hash, reference=code.reference)
        if len(code.data) <= INLINE_CODE_BYTES:
            return TaskCode(hash=code.hash, inline=code.data)
        blob = self._stored.get(code.hash)
        if blob is None:
            blob = upload(self._connection, "code", Blob(io.BytesIO(code.data), len(code.data)), code.hash)
            with self._lock:
                self._stored[code.hash] = blob
                if len(self._stored) > REMEMBERED:
                    self._stored.popitem(last=False)
        return TaskCode(hash=code.hash, blob=blob)

    def forget(self, code_hash: str) -> None:
        """Forget that the store has this code, because a request shows that it does not."""
        with self._lock:
            self._stored.pop(code_hash, None)
