"""The message that gives a run of tasks to an executor, until the executor's channel has taken all of it."""

import errno
import os
import socket
from collections.abc import Sequence

from msgspec.structs import replace

from cloudpar_worker.executor.frames import Place, Run, encode_run

from .payload_file import InFile


class RunFrame:
    """A run, and the files that contain its payloads.

    Attributes:
        rest: The bytes that the channel has not taken.

    Args:
        run: The run, without payloads that are in files.
        code: The file of the task code; None if the code is not in a file, or if the executor has the function.
        items: The file of the task data; None if the data is not in a file.

    Raises:
        OSError: The agent can open no more files.
    """

    def __init__(self, run: Run, code: InFile | None, items: InFile | None) -> None:
        if code is not None:
            run = replace(run, code_place=code.places[0])
        self._run = run if items is None else replace(run, places=items.places)
        self._files: list[int] = []
        try:
            # The store may close its files before the channel has taken the frame.
            self._files += [os.dup(each.file.fileno()) for each in (code,) if each is not None]
            self._files += [os.dup(each.file.fileno()) for each in (items,) if each is not None]
        except OSError:
            self.close()
            raise
        self.rest = memoryview(encode_run(self._run))

    def send(self, channel: socket.socket) -> None:
        """Write all that is left.

        Raises:
            BlockingIOError: The channel takes no more for now.
            OSError: The executor has ended.
        """
        while self.rest:
            try:
                sent = socket.send_fds(channel, [self.rest], self._files) if self._files else channel.send(self.rest)
            except OSError as error:
                if error.errno != errno.ETOOMANYREFS:
                    raise
                # Executors have not received as many descriptors of this user as the agent may have open.
                self.rest = memoryview(encode_run(self._inline()))
                sent = 0
            self.close()  # the files have gone with the first bytes
            self.rest = self.rest[sent:]

    def _inline(self) -> Run:
        """Return the run with its payloads in the message."""
        run = self._run
        code = run.code if run.code_place is None else _read(self._files[0], [run.code_place])[0]
        items = run.items if run.places is None else _read(self._files[-1], run.places)
        return replace(run, code=code, items=items, code_place=None, places=None)

    def close(self) -> None:
        """Close the files."""
        while self._files:
            os.close(self._files.pop())


def _read(descriptor: int, places: Sequence[Place]) -> list[bytes]:
    return [os.pread(descriptor, end - start, start) for start, end in places]
