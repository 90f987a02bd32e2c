import os
from pathlib import Path

import msgspec
from msgspec import Struct

from cloudpar_master.services import audit
from cloudpar_master.services.backend import Backend
from cloudpar_master.services.dispatcher import Call


class AuditFile:
    """What administrators did, one line of JSON each, on disk before it is answered; for its owner only."""

    def __init__(self, path: Path, backend: Backend) -> None:
        self._backend = backend
        self._path = path

    def note(self, call: Call, outcome: str, reply: Struct | None = None) -> None:
        """An action came out so; whatever is none is passed over."""
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
