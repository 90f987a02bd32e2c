"""The agent's side of one executor: its channel, output files, recall page and memory measurement. No method blocks."""

import fcntl
import os
import socket
import struct
import termios
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, suppress

import psutil

from cloudpar_protocol.payloads import InlineData, RangeData
from cloudpar_protocol.worker_messages import Lease, TaskCredentials
from cloudpar_worker.core.executor_result import ExecutorResult
from cloudpar_worker.executor import credentials_page
from cloudpar_worker.executor.capture import held_bytes, open_output, read_output
from cloudpar_worker.executor.code_cache import CodeCache
from cloudpar_worker.executor.frames import READY, ResultReader, Run, no_file
from cloudpar_worker.executor.recall import RecallPage, open_page
from cloudpar_worker.sandbox.processes import process_of
from cloudpar_worker.sandbox.shared_memory import used_bytes
from cloudpar_worker.zygote.cpu_share import LAST

from .payload_file import InFile, size_of
from .result_files import ANCILLARY_BYTES, CLOSE_ON_EXEC, ResultFiles
from .run_frame import RunFrame

_CHANNEL_BYTES = 1 << 20
"""The send buffer that each end of the channel requests from the kernel, in bytes."""
_READ_BYTES = 1 << 18
_SMALL_BYTES = 1 << 14
"""After a read of fewer bytes than this, another read would probably find nothing."""
_TURN_BYTES = 1 << 22
"""The most bytes that the agent reads from one channel before it handles other events."""


class ExecutorProcess:
    """The objects by which the agent uses an executor.

    Attributes:
        python: The executor's version of Python.
        channel: The agent's end of the socket that carries tasks to the executor, and results back.
        theirs: The descriptors for the executor; empty after `handed_over`.
        pid: The executor's process id; 0 until the zygote has reported the fork.
        ready: Whether the executor has started and can get tasks.
        ended: Whether the executor has closed its end of the channel.
        recall_page: The page by which the agent recalls tasks from the executor.
        package_id: The package of the tasks that the executor got last; "" before it has got any.

    Args:
        credentials: Whether the executor has a page for AWS credentials. Only an executor with a user of its own may
            have one.
        takes_files: Whether the executor may send large results as files. On a shared worker it may not, because task
            code could send files until the agent can open no more.

    Raises:
        OSError: The system permits no more descriptors or memory, or a file in `tmp` cannot be made.
    """

    def __init__(
        self,
        executor_id: int,
        python: str,
        tmp: str | None,
        memory_bytes: int,
        *,
        credentials: bool = False,
        takes_files: bool = False,
    ) -> None:
        self.executor_id = executor_id
        self.python = python
        self.weight_request, self.weight_request_s = b"", 0.0
        self.pid = 0
        self.ready = self.ended = False
        self._process: psutil.Process | None = None
        with ExitStack() as opened:
            self.channel, theirs = map(opened.enter_context, socket.socketpair())
            for end in (self.channel, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _CHANNEL_BYTES)
            self.channel.setblocking(False)
            self._theirs: socket.socket | None = theirs
            self._stdout = _held(opened, open_output(tmp))
            self._stderr = _held(opened, open_output(tmp))
            self._page = _held(opened, open_page(tmp))
            self.recall_page = RecallPage(self._page)
            self._credentials_page = _held(opened, credentials_page.open_page()) if credentials else None
            opened.pop_all()
        self._shared_memory: int | None = None
        self._files = ResultFiles() if takes_files else None
        self._reader = ResultReader(memory_bytes, no_file if self._files is None else self._files.take)
        self._buffer = bytearray(_READ_BYTES)
        self._unsent: deque[RunFrame] = deque()
        self._codes = CodeCache()
        self.package_id = ""
        self._account = ""
        self._credentials: TaskCredentials | None = None

    @property
    def theirs(self) -> list[int]:
        """The descriptors that the executor gets, in the order of `SPAWN_FDS`."""
        if self._theirs is None:
            return []
        page = [] if self._credentials_page is None else [self._credentials_page]
        return [self._theirs.fileno(), self._stdout, self._stderr, self._page, *page]

    def handed_over(self) -> None:
        """Close the descriptors that only the executor needs. Call it when the zygote has copies of `theirs`."""
        if self._theirs is not None:
            self._theirs.close()
            os.close(self._page)
            self._theirs = None

    def give(self, credentials: TaskCredentials | None) -> None:
        """Give AWS credentials to the tasks of `package_id`. With None, the tasks keep those that they have."""
        if credentials is None or credentials == self._credentials or self._credentials_page is None:
            return
        if credentials.package_id != self.package_id:
            raise AssertionError("credentials of another package")
        self._credentials = credentials
        credentials_page.write(self._credentials_page, credentials)

    def send(
        self,
        lease: Lease,
        start: int,
        end: int,
        code: bytes | InFile,
        items: Sequence[bytes | memoryview] | InFile | None,
        *,
        credentials: TaskCredentials | None = None,
    ) -> None:
        """Queue a run of tasks, and send as much of the run as the channel takes. `flush` sends the rest."""
        # The state machine gives an executor tasks of one account only. If it did not, this account's credentials would
        # be in the memory of a process that runs another account's code.
        if self._account not in {"", lease.account}:
            raise AssertionError(f"an executor of account {self._account} got a task of account {lease.account}")
        self._account, self.package_id = lease.account, lease.package_id
        self.give(credentials)
        # Sealed and unsealed code with the same hash count as different functions here. The agent verifies the hash of
        # sealed code, but not the hash of unsealed inline code. With one name for both, the executor could call
        # unsealed code with a false hash in place of sealed code.
        code_hash = lease.code.hash if lease.seal is None else f"sealed {lease.code.hash}"
        known = code_hash in self._codes
        self._codes.use(code_hash, size_of(code))
        data = lease.data
        run = Run(
            code_hash,
            None if known or isinstance(code, InFile) else code,
            lease.call,
            start,
            end,
            data.start if isinstance(data, RangeData) else 0,
            data.step if isinstance(data, RangeData) else 0,
            None if isinstance(items, InFile) else items,  # type: ignore[arg-type]  # here also bytes, there always views
            lease.codec,
            lease.retries,
            lease.retry_on,
            lease.threads_per_task,
            lease.depth,
            lease.elsewhere,
            None if credentials is None else credentials.region,
            lease.network == "none",
            takes_files=self._files is not None,
        )
        in_file = code if isinstance(code, InFile) and not known else None
        self._unsent.append(RunFrame(run, in_file, items if isinstance(items, InFile) else None))
        self.flush()

    def flush(self) -> None:
        """Write as much as the channel takes."""
        while self._unsent:
            try:
                self._unsent[0].send(self.channel)
            except BlockingIOError:
                return
            except OSError:
                self._drop_unsent()  # the executor has ended, and the zygote reports its exit
                return
            self._unsent.popleft()

    def _drop_unsent(self) -> None:
        while self._unsent:
            self._unsent.popleft().close()

    @property
    def unsent(self) -> bool:
        """Whether `flush` has more to write."""
        return bool(self._unsent)

    def receive(self, *, all_of_it: bool = False) -> list[ExecutorResult]:
        """Read about _TURN_BYTES bytes or, with `all_of_it`, all bytes that arrived before the call.

        Return the results in these bytes. The call also updates `ready` and `ended`.

        Raises:
            Garbage: Bytes arrived that the executor's own code cannot have written.
        """
        results: list[ExecutorResult] = []
        # The number of bytes is fixed before the first read. If the agent read until the channel is empty, task code
        # that writes as fast as the agent reads would keep the agent in this loop, and all other executors would wait.
        left = self._arrived_bytes() if all_of_it else _TURN_BYTES
        while left > 0:
            try:
                count = self._read() if self.ready else self._receive_ready()
            except BlockingIOError:
                break
            except OSError:
                count = 0
            if not count:
                self.ended = True
                break
            left -= count
            if not self.ready:
                self.ready = True
                continue
            with memoryview(self._buffer) as view:
                results += self._reader.feed(view[:count])
            if self._files is not None and not all_of_it:
                left -= self._files.read_bytes()
            if count < _SMALL_BYTES and not all_of_it:
                break
        return results

    def _read(self) -> int:
        """Read bytes into the buffer, and the files that came with them. Return the number of bytes."""
        if self._files is None:  # the kernel closes files that task code sends
            return self.channel.recv_into(self._buffer)
        count, ancillary, _, _ = self.channel.recvmsg_into([self._buffer], ANCILLARY_BYTES, CLOSE_ON_EXEC)
        if ancillary:
            self._files.add(ancillary)
        return count

    def _receive_ready(self) -> int:
        """Receive READY, and return the number of its bytes; 0 if the executor has ended.

        The agent accepts a descriptor only with these bytes, because no task code has run in the executor before it
        sends them.
        """
        message, descriptors, _, _ = socket.recv_fds(self.channel, len(READY), 1)
        if descriptors:
            (self._shared_memory,) = descriptors
        return len(message)

    def _arrived_bytes(self) -> int:
        """Return the number of bytes that the agent can read from the channel; the kernel bounds this number."""
        (count,) = struct.unpack("i", fcntl.ioctl(self.channel, termios.FIONREAD, bytes(4)))
        return int(count)

    def mark(self) -> bool | None:
        """Return what the running task last reported by a mark (see `frames`): whether it waits for tasks of its own.

        None if the running task has sent no mark since the last call.
        """
        return self._reader.mark()

    def outputs(self) -> tuple[str | None, str | None]:
        """Return the start of the running task's standard output, and of its standard error; None for an empty one."""
        return read_output(self._stdout), read_output(self._stderr)

    def private_bytes(self) -> int | None:
        """Return the memory of the executor, without the processes that it started and without pages of files.

        The result is 0 if the executor has ended, and None if the kernel hides the executor from this user.
        """
        if found := process_of(self.pid):
            return found.private_bytes
        try:  # systems without /proc
            return int(psutil.Process(self.pid).memory_info().rss)
        except psutil.NoSuchProcess:
            return 0
        except psutil.Error:
            return None

    def shared_memory_bytes(self) -> int | None:
        """Return the memory of the executor's own file system for shared memory; None if the executor has none."""
        return None if self._shared_memory is None else used_bytes(self._shared_memory)

    def cpu_us(self) -> int:
        """Return the CPU time of the executor's own process; 0 if the process has ended, or if the kernel hides it."""
        try:
            self._process = self._process or psutil.Process(self.pid)
            times = self._process.cpu_times()
        except psutil.Error:
            return 0
        return round((times.user + times.system) * 1e6)

    def threads(self) -> int:
        """Return how many threads the executor's own process has; 0 if it has ended, or if the kernel hides it."""
        # This method does not use psutil, which searches the text of the process's status. A task could choose a name
        # for its process in which psutil finds a smaller number of threads. The task would then get more processor time
        # than other tasks.
        with suppress(OSError):  # tasks use all of the machine's descriptors
            process = process_of(self.pid)
            return process.threads if process else 0
        return 0

    def is_light(self) -> bool:
        """Whether the executor's main thread has the lowest weight, and the agent has a greater weight."""
        with suppress(OSError):  # the executor has ended
            return os.getpriority(os.PRIO_PROCESS, 0) < os.getpriority(os.PRIO_PROCESS, self.pid) == LAST
        return False

    def output_bytes(self) -> int:
        """Return the size of the larger output file. `held_bytes` says what counts as the size of a file."""
        return max(held_bytes(self._stdout), held_bytes(self._stderr))

    def close(self) -> None:
        """Close all of the agent's descriptors for the executor."""
        self.handed_over()
        self._drop_unsent()
        if self._files is not None:
            self._files.close()
        self.channel.close()
        self.recall_page.close()
        os.close(self._stdout)
        os.close(self._stderr)
        if self._shared_memory is not None:
            os.close(self._shared_memory)
            self._shared_memory = None
        if self._credentials_page is not None:
            os.close(self._credentials_page)


def _held(opened: ExitStack, descriptor: int) -> int:
    opened.callback(os.close, descriptor)
    return descriptor


def inline_items(lease: Lease, start: int, end: int) -> list[bytes] | None:
    """Return the items of the tasks [start, end), which came inside the lease; None if the lease's data is not inline.

    The tasks must be in one range of the lease.

    Raises:
        LookupError: The task `start` is in no range of the lease.
    """
    if not isinstance(lease.data, InlineData):
        return None
    position = 0
    for first, last in lease.ranges:
        if first <= start < last:
            offset = position + start - first
            return lease.data.items[offset : offset + end - start]
        position += last - first
    raise LookupError(f"task {start} is not in lease {lease.lease_id}")
