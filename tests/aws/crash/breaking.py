"""Breaks single calls of AWS: a crash within a port's call may leave half of what the port promises."""

import random
from typing import Any, Literal, NamedTuple

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from aws.in_process import ENDPOINT, watched_by
from aws.stubs import client_error
from cloudpar_master.adapters.aws.errors import translate
from cloudpar_protocol.errors import Unavailable
from master.crash.crashing import Crash, Fuse

READS = {
    "BatchGetItem", "GetItem", "GetObject", "GetQueueAttributes", "HeadObject", "ListObjectsV2", "Query", "Scan",
}  # fmt: skip
"""For these calls, a crash before or after them or a lost answer changes nothing that a master can see."""

LIKELIHOOD = 0.1

Kind = Literal["dies before", "dies after", "is refused", "gets no answer", "is sent twice"]
KINDS: list[Kind] = ["dies before", "dies after", "is refused", "gets no answer", "is sent twice"]


class Break(NamedTuple):
    """What happens at the k-th call, counted from 0.

    dies: The process ends before or after the call takes effect.
    is refused: The library has given up its retries; nothing took effect.
    gets no answer: It took effect, and the library gave up waiting.
    is sent twice: It took effect, the connection broke, and the library sent it again.
    """

    call: int
    kind: Kind


class AwsFuse(Fuse):
    """Counts the AWS calls that a run's masters make (not those of the tests), and breaks those that `choose` names.

    Attributes:
        broken: How often a call was broken.
        port_firsts: Calls that are the first of a port's call.
        port_lasts: Calls that are the last of a port's call.
    """

    def __init__(self) -> None:
        super().__init__()
        self.broken = 0
        self.port_firsts: set[int] = set()
        self.port_lasts: set[int] = set()
        self._kind: Kind | None = None

    def call(self, name: str, method: Any, *arguments: Any, **named: Any) -> Any:
        """Watch AWS's calls during a port's call."""
        first = len(self.calls)
        with watched_by(self):
            answer = method(*arguments, **named)
        if len(self.calls) > first:
            self.port_firsts.add(first)
            self.port_lasts.add(len(self.calls) - 1)
        return answer

    def passes(self, error: Exception) -> bool:
        """Whether the functions take this error for a temporary one; for the timer, several may come together."""
        if isinstance(error, ExceptionGroup):
            return all(map(self.passes, error.exceptions))
        return isinstance(translate(error), Unavailable)

    def choose(self, number: int) -> Kind | None:
        """Choose what happens at a call. None: nothing."""
        return None

    def before(self, operation: str) -> None:
        self._kind = self.choose(len(self.calls))
        self.calls.append(operation)
        if self._is("dies before"):
            raise Crash(f"before {operation}, call {len(self.calls) - 1}")
        if self._is("is refused"):
            raise client_error("ThrottlingException", 400, operation)

    def asked(self, service: str, request: AWSPreparedRequest) -> AWSResponse | None:
        return None

    def sent(self, request: AWSPreparedRequest) -> AWSResponse | None:
        if self._is("is sent twice"):
            raise ConnectionClosedError(endpoint_url=ENDPOINT)
        return None

    def after(self) -> None:
        if self._is("dies after"):
            raise Crash(f"after {self.calls[-1]}, call {len(self.calls) - 1}")
        if self._is("gets no answer"):
            raise ReadTimeoutError(endpoint_url=ENDPOINT)

    def _is(self, kind: Kind) -> bool:
        """Whether this kind happens now. It happens once in a call."""
        if self._kind != kind:
            return False
        self._kind = None
        self.broken += 1
        return True


class Unreliable(AwsFuse):
    """Breaks a random share of the calls in random ways."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.breaks_many = True
        self._random = random.Random(seed)

    def choose(self, number: int) -> Kind | None:
        return self._random.choice(KINDS) if self._random.random() < LIKELIHOOD else None


def breaks(unbroken: AwsFuse, *, rival: bool) -> list[Break]:
    """Return all breaks of a run that differ from each other and from those of test_g09_port_calls.

    A crash before a call equals one after the write before it in the same request. A crash before the first or after
    the last call of a port's call equals a crash before or after the port's call. With a rival, crashes before calls
    differ: it stores something between two calls of ports.
    """
    known = {(number, "dies after") for number in unbroken.port_lasts}
    known |= {(number, "dies before") for number in (unbroken.port_firsts if rival else range(len(unbroken.calls)))}
    return [
        Break(number, kind)
        for number, operation in enumerate(unbroken.calls)
        for kind in KINDS
        if (kind == "is refused" or operation not in READS) and (number, kind) not in known
    ]
