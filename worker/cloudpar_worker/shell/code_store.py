"""Keeps downloaded task code: while a lease needs it, and for longer if there is space."""

import hashlib
import threading
from collections import OrderedDict
from typing import Final

from cloudpar_protocol.large_buffers import LARGE_BYTES
from cloudpar_protocol.worker_messages import Lease
from cloudpar_worker.sandbox.kernel import LINUX

from .master_client import MasterClient, PayloadRefused
from .payload_file import InFile, size_of
from .verifying import damaged

CODE_BYTES: Final = 64 * 1024 * 1024
"""How many bytes of downloaded task code the agent keeps. Above this number, it drops code that no lease needs."""

CodeKey = tuple[str, str]
"""An account and the hash of its task code. Without the account, a lease could get the function of another account by
naming the hash of that function.
"""


def code_key(lease: Lease) -> CodeKey:
    """Return the key under which the task code of a lease is kept."""
    return lease.account, lease.code.hash


class CodeStore:
    """The task code of leases. The downloading threads add code; the main thread reads and drops it.

    Args:
        client: Downloads code.
    """

    def __init__(self, client: MasterClient) -> None:
        self._client = client
        self._codes: OrderedDict[CodeKey, bytes | InFile] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def of(self, lease: Lease) -> bytes | InFile:
        """Return the task code of a lease, or the text of its reference. Code in a blob must have been downloaded."""
        code = lease.code
        if code.reference is not None:
            return code.reference.encode()
        return self._codes[code_key(lease)] if code.inline is None else code.inline

    def fetch(self, lease: Lease) -> None:
        """Download the task code of a lease, unless it is here. Large code in a file stays there.

        Raises:
            PayloadRefused: The code cannot be downloaded, or (SealBroken) does not match its hash.
            Stopped: `hang_up` of the client was called.
        """
        code, key = lease.code, code_key(lease)
        if code.inline is not None or code.reference is not None or key in self._codes:
            return
        if code.blob is None or lease.code_link is None:
            raise PayloadRefused("the lease has no link for its code")
        body = self._client.get(lease.code_link, code.blob.offset, code.blob.offset + code.blob.size)
        if hashlib.sha256(body).hexdigest() != code.hash:
            raise damaged(lease, "the task code is not what its hash says")
        is_mapped = LINUX and code.blob.size >= LARGE_BYTES
        file = self._client.open(lease.code_link, code.blob) if is_mapped else None
        place = code.blob.offset, code.blob.offset + code.blob.size
        kept = bytes(body) if file is None else InFile(file, [place])
        with self._lock:
            if key not in self._codes:
                self._codes[key] = kept
                self._bytes += code.blob.size
            elif file is not None:
                file.close()  # another thread has downloaded the same code meanwhile

    def trim(self, used: set[CodeKey]) -> None:
        """While the kept code exceeds CODE_BYTES, drop the oldest code that is not in `used`."""
        for key in list(self._codes):
            if self._bytes <= CODE_BYTES:
                return
            if key not in used:
                with self._lock:
                    code = self._codes.pop(key)
                    self._bytes -= size_of(code)
                if isinstance(code, InFile):
                    code.file.close()
