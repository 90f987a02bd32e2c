"""The executor's loop: it reads runs, executes their tasks, and writes results."""

import errno
import fcntl
import os
import socket
import struct
import termios
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from cloudpar_protocol import nesting
from cloudpar_protocol.brief import brief_call
from cloudpar_protocol.limits import BLOB_BYTES
from cloudpar_protocol.payloads import CallStyle, TaskResult
from cloudpar_worker.core.executor_result import SKIPPED, UNFIT, ExecutorResult
from cloudpar_worker.sandbox import syscall_filter

from .advice import advise
from .capture import Capture
from .codecs import SERIALIZATIONS, Serialization
from .credentials_page import CredentialsPage
from .failures import bounded, is_among, line, remote_traceback, traceback_of, with_attempts
from .frames import LENGTH, RUN_FILES, Run, decode_run, encode_file, encode_result_into
from .functions import FunctionCache
from .lacks import lack
from .mapped_payload import Mapped, MappedItems
from .recall import RecallPage
from .refusals import Refusals
from .result_file import ResultFile
from .thread_limits import thread_variables
from .waiting import TaskWaits

_clock = time.monotonic_ns
"""A reference to the function, since task code may replace the function in `time`. Even if task code falsifies the
durations, the agent corrects them by its own clock (ExecutorRecord.audit).
"""
_CLOSE_ON_EXEC: int = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
"""The flag for descriptors that programs which tasks start do not inherit. macOS, where no descriptors come, lacks it.
"""
_LARGE = 1 << 20
"""After a frame of more than this many bytes the executor makes a new buffer, because the old buffer would keep so much
memory.
"""


TaskItems = list[memoryview] | MappedItems | None
"""The data of a run's tasks; None if the package's data is a range."""


class Runner:
    """Reads runs, executes the tasks of each run in order, and writes each result at once."""

    def __init__(
        self,
        channel: socket.socket,
        capture: Capture,
        recall: RecallPage,
        refusals: Refusals,
        own_pool: nesting.OwnPool | None = None,
        *,
        credentials: CredentialsPage | None = None,
    ) -> None:
        self._channel = channel
        self._capture = capture
        self._recall = recall
        self._refusals = refusals
        self._credentials = credentials
        self._started = 0
        self._functions = FunctionCache()
        self._items: TaskItems = None
        self._file: ResultFile | None = None
        """The data of the result that is sent next, if they travel as a file."""
        self._frame = bytearray(256)
        self._forked = False
        self._sending = threading.Lock()
        self._waits = TaskWaits(self._send, own_pool)
        nesting.register(self._waits)
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self._forked = True

    def _send(self, frame: bytes | bytearray) -> None:
        """Write a complete frame. The lock is needed because threads of a task may write marks at the same time."""
        with self._sending:
            self._channel.sendall(frame)

    def _send_with_file(self, result: TaskResult, file: ResultFile) -> None:
        """Send a result whose data are in a file."""
        self._file = None
        try:
            frame = bytearray()
            encode_result_into(result, frame)
            frame[:0] = encode_file(len(file))
            with self._sending:
                sent = socket.send_fds(self._channel, [frame], [file.descriptor])
                self._channel.sendall(frame[sent:])
        except OSError as error:
            if error.errno != errno.ETOOMANYREFS:
                raise
            encode_result_into(replace(result, data=file.read()), frame)
            self._send(frame)
        finally:
            file.close()

    def _agent_is_behind(self) -> bool:
        """Whether the agent has not read all earlier results. Then large ones must wait for room in the channel.

        Files would take no room there, so an executor could fill the memory of its machine with results.
        """
        (unread,) = struct.unpack("i", fcntl.ioctl(self._channel, termios.TIOCOUTQ, bytes(4)))
        return bool(unread)

    def serve(self) -> None:
        """Serve until the agent closes the channel."""
        while self._serve_run():
            pass

    def _serve_run(self) -> bool:
        """Read a run and execute its tasks; return False if the agent has closed the channel instead.

        The data of a run may be large, so it is released before the executor waits for the next run.
        """
        body, files = self._receive()
        if body is not None:
            self._capture.restore()
            run = decode_run(body)
            if run.offline and not self._started:
                self._go_offline()
            # Set the variables only before the first task: all runs of an executor have the same limit, and libraries
            # read the variables only once.
            if run.threads is not None and not self._started:
                os.environ |= thread_variables(os.environ, run.threads)
            if run.aws_region is not None and self._credentials is not None:
                self._credentials.offer(run.aws_region)
            if len(files) != (run.code_place is not None) + (run.places is not None):
                raise OSError(errno.EMFILE, "the tasks of this process have left no descriptors for their payloads")
            code = run.code if run.code_place is None else Mapped.of(files[0], run.code_place)
            self._functions.take(run.code_hash, code)
            del code
            self._waits.depth = run.depth
            self._items = run.items if run.places is None else MappedItems(files[-1], run.places)
            self._run(run)
            self._items = None
            for file in files:
                os.close(file)
        return body is not None

    def _go_offline(self) -> None:
        """Refuse new sockets to this process for good. It has run no task code yet, so its only socket is its channel.

        Raises:
            OSError: The kernel refuses this. The executor must end, because its tasks must not have a network.
        """
        syscall_filter.install(syscall_filter.without_sockets())
        self._refusals = self._refusals._replace(offline=True)

    def _receive(self) -> tuple[bytearray | None, list[int]]:
        """Receive a frame; return its body and the descriptors that came with it. The body is None at the end."""
        head, ancillary, _, _ = self._channel.recvmsg(LENGTH.size, socket.CMSG_LEN(4 * RUN_FILES), _CLOSE_ON_EXEC)
        files = [file for _, _, data in ancillary for file in memoryview(data[: len(data) // 4 * 4]).cast("i")]
        whole = self._read(LENGTH.size, head) if head else None
        return None if whole is None else self._read(LENGTH.unpack(whole)[0]), files

    def _read(self, size: int, start: bytes = b"") -> bytearray | None:
        """Receive `size` bytes, of which `start` has come already; None if the agent has closed the channel."""
        body = bytearray(size)
        body[: len(start)] = start
        view = memoryview(body)[len(start) :]
        while view:
            count = self._channel.recv_into(view)
            if not count:
                return None
            view = view[count:]
        return body

    def _run(self, run: Run) -> None:
        items, start, origin, step, call = self._items, run.start, run.origin, run.step, run.call
        load, take, frame, send = self._functions.load, self._capture.take, self._frame, self._send
        decode = _decoder(run)
        function: Any = None
        result: TaskResult | None
        recall = self._recall.words
        for index in range(start, run.end):
            count, self._started = self._started, self._started + 1
            recall[0] = self._started
            if recall[1] <= count < recall[2]:
                encode_result_into(ExecutorResult(index, SKIPPED, 0), frame)
                send(frame)
                continue
            started_at_ns = _clock()
            unpickling = "the task code"
            failed: list[str] = []
            try:
                function = function or load(run.code_hash, run.codec)
                unpickling = "the task data"
                data: Any = origin + index * step if items is None else decode(items[index - start])
                unpickling = ""
                value = _call(function, data, call)
                data = None
                result = self._success(run, index, value, started_at_ns)
                value = None
            except BaseException as error:
                called_with = None if unpickling else brief_call(data, call)
                result = self._failed(
                    run, index, error, started_at_ns, failed, unpickling=unpickling, called_with=called_with
                )
            if result is None:
                result = self._retry(run, function, index, started_at_ns, failed)
            if self._forked:
                os._exit(0)  # this is a child that the task forked, and in which the function has returned or raised
            self._waits.task_ended()
            stdout, stderr = take()
            if stdout or stderr:
                result = TaskResult(
                    index, result.outcome, result.duration_us, result.data, None,
                    result.message, result.traceback, stdout, stderr, None, result.input,
                )  # fmt: skip
            if self._file is None:
                encode_result_into(result, frame)
                send(frame)
            else:
                self._send_with_file(result, self._file)
            if len(frame) > _LARGE:
                frame = self._frame = bytearray(256)
            result = None

    def _success(self, run: Run, index: int, value: Any, started_at_ns: int) -> TaskResult:
        """Return the result of a task that returned a value. If the value is in a file, it is in `_file`."""
        codec = SERIALIZATIONS[run.codec]
        try:
            data = codec.encode_large(value) if run.takes_files else codec.encode(value)
        except BaseException as error:
            message = codec.refusal(type(value), error)
            return TaskResult(index, "unpicklable", _elapsed_us(started_at_ns), message=message)
        if isinstance(data, ResultFile):
            self._file = data
            if not self._agent_is_behind():
                return TaskResult(index, "ok", _elapsed_us(started_at_ns))
            data = data.read()
            self._drop_file()
        if len(data) > BLOB_BYTES:
            message = (
                f"the result takes {len(data)} bytes, over the limit of {BLOB_BYTES} for one task: "
                "return less, or write it to storage of your own and return where it lies"
            )
            return TaskResult(index, "unpicklable", _elapsed_us(started_at_ns), message=message)
        return TaskResult(index, "ok", _elapsed_us(started_at_ns), data)

    def _drop_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _failed(
        self,
        run: Run,
        index: int,
        error: BaseException,
        started_at_ns: int,
        failed: list[str],
        *,
        unpickling: str = "",
        called_with: str | None,
    ) -> TaskResult | None:
        """Return the result of a task that raised; None if the task is to be retried.

        For a retry, the `line` of the exception is appended to `failed`. `called_with` describes the task's arguments;
        it is None if the function was not called.
        """
        self._drop_file()  # a signal handler of the task may raise after the task has returned
        self._refusals.explain(error)
        lacks = lack(error, unpickling=bool(unpickling))
        if lacks and run.elsewhere:
            return ExecutorResult(index, UNFIT, _elapsed_us(started_at_ns), message=lacks)
        if not unpickling or run.codec == "pickle":  # the error about a reference already says what to do
            advise(error, unpickling or "the task")
        if len(failed) < run.retries and not (unpickling or lacks) and is_among(error, run.retry_on):
            failed.append(line(error))
            return None
        codec = SERIALIZATIONS[run.codec]
        return _failure(index, error, started_at_ns, codec, called_with=called_with, failed=failed)

    def _retry(self, run: Run, function: Any, index: int, started_at_ns: int, failed: list[str]) -> TaskResult:
        """Retry a task until it returns or has used up its retries; return its result.

        Each attempt decodes the data again, since the earlier attempt may have changed the decoded data.
        """
        decode, items = _decoder(run), self._items
        while not self._forked:
            try:
                data = run.origin + index * run.step if items is None else decode(items[index - run.start])
                return self._success(run, index, _call(function, data, run.call), started_at_ns)
            except BaseException as error:
                called_with = brief_call(data, run.call)
                result = self._failed(run, index, error, started_at_ns, failed, called_with=called_with)
                if result is not None:
                    return result
        os._exit(0)


def _decoder(run: Run) -> Callable[[Any], Any]:
    """Return the function that decodes the data of a task."""
    return SERIALIZATIONS[run.codec].decode if run.places is None else Mapped.load


def _call(function: Any, data: Any, call: CallStyle) -> Any:
    if call == "value":
        return function(data)
    if call == "args":
        return function(*data)
    return function(*data[0], **data[1])


def _elapsed_us(started_at_ns: int) -> int:
    return max((_clock() - started_at_ns) // 1000, 1)


def _failure(
    index: int,
    error: BaseException,
    started_at_ns: int,
    codec: Serialization,
    *,
    called_with: str | None,
    failed: Sequence[str],
) -> TaskResult:
    """Return the result of a task that raised. `called_with` is as in `_failed`."""
    own = traceback_of(error)
    if called_with is not None and own is not None:
        own = own.tb_next  # without the frame of _call
    text, trace = line(error), with_attempts(remote_traceback(error, own), failed)
    data, reason = codec.encode_error(error)
    if reason:
        text = bounded(f"{text}\n(comes as text only: {reason})")
    return TaskResult(index, "error", _elapsed_us(started_at_ns), data, None, text, trace, input=called_with)
