import os
from pathlib import Path

import msgspec
from msgspec import Struct

from cloudpar_master.services import audit
from cloudpar_master.services.backend import Backend
from cloudpar_master.services.dispatcher import Call


class AuditFile:
    """The file that records what operators do: one line of JSON for each action. Only the file's owner may read it.

    The line of an action is on the disk before the master answers the call.
    """

    def __init__(self, path: Path, backend: Backend) -> None:
        self._backend = backend
        self._path = path

    def note(self, call: Call, outcome: str, reply: Struct | None = None) -> None:
        """Write the line about an operator's action. For any other call, write nothing.

        Args:
            call: The call.
            outcome: "done", or the error's code.
            reply: The reply, if the call was carried out.

        Raises:
            OSError: The line cannot be written.
        """
        facts = audit.facts(self._backend, call, audit.ADMIN, outcome, reply)
        if facts is None:
            return
        clock = self._backend.clock
        line = msgspec.json.encode({"at": clock.date(clock.now()), **facts}) + b"\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            try:
                _append(descriptor, line)
            except OSError:
                # Without this line, the next record would continue the one that the full disk has cut off. The caller
                # repeats the action, which then gets a whole record.
                os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)


def _append(descriptor: int, line: bytes) -> None:
    while line:
        line = line[os.write(descriptor, line) :]  # a disk that becomes full keeps the start of a line without an error
    os.fsync(descriptor)
