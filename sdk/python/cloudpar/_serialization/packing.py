"""Collects and serializes the task data of a package."""

import itertools
import logging
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from cloudpar.errors import TooLarge
from cloudpar_protocol.limits import PACKAGE_TASKS
from cloudpar_protocol.payloads import CallStyle, Codec, InlineData, RangeData
from cloudpar_protocol.seals import Seals
from cloudpar_protocol.transport.payload_folder import PayloadFolder

from .blob import Blob
from .local_modules import LOCAL_MODULES
from .packer import Packer, is_full, too_many
from .pickling import DataNeeds

NOTICE_S = 10.0
"""If an iterable is still being read after this many seconds, a warning is logged, since the iterable may be endless.
"""

INT64 = range(-(2**63), 2**63)

log = logging.getLogger("cloudpar")


@dataclass(frozen=True)
class Packed:
    """The task data of n tasks: a part of the request that starts them, or a blob that is uploaded before the request.

    `needs` are the modules, and the pickled classes and functions, that must be sent with the task code. `failure` is
    the exception that ended the values early, or None. Either the next value cannot be serialized (`refused` is then
    True), or the iterable raised the exception. With a failure, `n` may be 0.
    """

    n: int
    data: RangeData | InlineData | Blob
    needs: DataNeeds = field(default_factory=DataNeeds, compare=False)
    failure: Exception | None = None
    refused: bool = False

    def close(self) -> None:
        """If the data is a blob, close it. The bytes of the blob can then no longer be uploaded."""
        if isinstance(self.data, Blob):
            self.data.close()


def range_data(values: range) -> RangeData | None:
    """Return the task data of a range, as two numbers; None if it is empty, or a number needs more than 64 bits."""
    if len(values) > 0 and values[0] in INT64 and values[-1] in INT64 and values.step in INT64:
        return RangeData(start=values.start, step=values.step)
    return None


def pack(
    values: Iterable[Any],
    limit: int | None = None,
    codec: Codec = "pickle",
    seals: Seals | None = None,
    folder: PayloadFolder | None = None,
    *,
    first: int = 0,
    call: CallStyle = "value",
) -> Packed | None:
    """Collect and serialize the data of a package; return None if there are no values.

    Args:
        values: The values, one for each task.
        limit: Take at most this many values; None takes all values. If `values` is an iterator, a later call takes the
            next values. With a limit, the data ends before a value that cannot be serialized, or when the iterable
            raises an exception. The exception is then `failure` of the result.
        codec: The serialization that the task code expects.
        seals: The package's seals; None if the package is not sealed.
        folder: The payload folder of the pool's own master, to which large data is written. None if the pool has no
            master of its own, so that large data is uploaded.
        first: The index of the first value in its map, for error texts.
        call: How the function is called with a value, for error texts.

    Raises:
        SerializationError: A value cannot be serialized, and there is no limit.
        TooLarge: There are more values or more bytes than a package may have.
        OSError: The disk is full, or a file for the data cannot be created.
        RequestError: The payload folder was removed, or belongs to another user now.
        Exception: The exception that the iterable raised, if there is no limit.
    """
    if limit is None and isinstance(values, Sized) and _is_over(values):
        raise too_many()
    if limit is None and isinstance(values, range) and (data := range_data(values)) is not None:
        return Packed(len(values), data)
    packer = Packer(seals, folder, first, call, codec)
    try:
        with LOCAL_MODULES.by_value(), _notice() if limit is None and not isinstance(values, Sized) else nullcontext():
            failure, refused = _fill(packer, values, limit)
        n = len(packer)
        packed = packer.finish() if n else None if failure is None else InlineData([])
    except BaseException as error:
        packer.close()
        if isinstance(error, OSError) and is_full(error):
            raise _no_room(error, folder) from error
        raise
    if packed is None or isinstance(packed, InlineData):
        packer.close()
    return None if packed is None else Packed(n, packed, packer.needs, failure, refused)


def _fill(packer: Packer, values: Iterable[Any], limit: int | None) -> tuple[Exception | None, bool]:
    """Pack the values. With a limit, return the error that ended the values early; without a limit, raise it.

    The second return value is True if a value caused the error, and False if the iterable raised it or there is no
    error.
    """
    taken = 0
    try:
        for value in values if limit is None else itertools.islice(values, limit):
            taken += 1
            packer.append(value)
    except Exception as error:
        if limit is None or isinstance(error, TooLarge) or is_full(error):
            raise
        return error, taken > len(packer)
    return None, False


def _is_over(values: Sized) -> bool:
    try:
        return len(values) > PACKAGE_TASKS
    except OverflowError:  # a range may have more values than len() can return
        return True
    except TypeError:  # the results of a map with `buffersize` do not know their number
        return False


def _no_room(error: OSError, folder: PayloadFolder | None) -> OSError:
    place = tempfile.gettempdir() if folder is None else folder
    fix = "free space there, or set TMPDIR to a folder with more before the program starts"
    return OSError(error.errno, f"{error.strerror}: the data of this package are written to {place}: {fix}")


@contextmanager
def _notice() -> Iterator[None]:
    """Warn after some seconds that an iterable is still being read, since the iterable may be endless."""
    text = (
        "cloudpar: still collecting the iterable after %.0f s; no task starts before its end "
        "(buffersize= starts them as it goes on)"
    )
    timer = threading.Timer(NOTICE_S, log.warning, (text, NOTICE_S))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
