import os
from pathlib import Path

import msgspec
from msgspec import Struct

from cloudpar_master.services import audit
from cloudpar_master.services.backend import Backend
from cloudpar_master.services.dispatcher import Call


class AuditFile:
    """A file of what administrators did, one line of JSON each, which only its owner may read.

    A line is on disk before its call is answered.
    """

    def __init__(self, path: Path, backend: Backend) -> None:
        self._backend = backend
        self._path = path

    def note(self, call: Call, outcome: str, reply: Struct | None = None) -> None:
        """Note how an action of an administrator ended. A call that is no such action leaves no line."""
        facts = audit.facts(self._backend, call, audit.ADMIN, outcome, reply)
        if facts is None:
            return
        line = msgspec.json.encode({"at": self._backend.clock.now(), **facts}) + b"\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
