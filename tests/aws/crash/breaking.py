"""What may happen at each single call of AWS, which the ports do not show: half of what a port promises is done."""

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
"""Whether somebody died before or after one of these, or did not get its answer, makes no difference to anybody."""

LIKELIHOOD = 0.1

Kind = Literal["dies before", "dies after", "is refused", "gets no answer", "is sent twice"]
KINDS: list[Kind] = ["dies before", "dies after", "is refused", "gets no answer", "is sent twice"]


class Break(NamedTuple):
    """What happens at the k-th call, from 0.

    dies: The process does, before or after the call took effect.
    is refused: The library has tried again and again; nothing took effect.
    gets no answer: It took effect, and the library gave up waiting.
    is sent twice: It took effect, the connection broke, and the library sent it again.
    """

    call: int
    kind: Kind


class AwsFuse(Fuse):
    """Counts the calls of AWS that a run's masters make, not those of the tests, and breaks one of them.

    Attributes:
        broken: How often it did so.
        firsts: Calls that are the first ones of a port's.
        lasts: The last ones.
    """

    def __init__(self, at: Break | None = None) -> None:
        super().__init__()
        self.broken = 0
        self.firsts: set[int] = set()
        self.lasts: set[int] = set()
        self._break = at
        self._kind: Kind | None = None

    def call(self, name: str, method: Any, *arguments: Any, **named: Any) -> Any:
        """Watch AWS's calls while the master is at a port."""
        first = len(self.calls)
        with watched_by(self):
            answer = method(*arguments, **named)
        if len(self.calls) > first:
            self.firsts.add(first)
            self.lasts.add(len(self.calls) - 1)
        return answer

    def passes(self, error: Exception) -> bool:
        """As the functions see it; the timer brings several."""
        if isinstance(error, ExceptionGroup):
            return all(map(self.passes, error.exceptions))
        return isinstance(translate(error), Unavailable)

    def choose(self, number: int) -> Kind | None:
        """What happens at a call."""
        return self._break.kind if self._break and self._break.call == number else None

    def before(self, operation: str) -> None:
        """See Watcher."""
        self._kind = self.choose(len(self.calls))
        self.calls.append(operation)
        if self._is("dies before"):
            raise Crash(f"before {operation}, call {len(self.calls) - 1}")
        if self._is("is refused"):
            raise client_error("ThrottlingException", 400, operation)

    def asked(self, service: str, request: AWSPreparedRequest) -> AWSResponse | None:
        """See Watcher."""
        return None

    def sent(self, request: AWSPreparedRequest) -> AWSResponse | None:
        """See Watcher."""
        if self._is("is sent twice"):
            raise ConnectionClosedError(endpoint_url=ENDPOINT)
        return None

    def after(self) -> None:
        """See Watcher."""
        if self._is("dies after"):
            raise Crash(f"after {self.calls[-1]}, call {len(self.calls) - 1}")
        if self._is("gets no answer"):
            raise ReadTimeoutError(endpoint_url=ENDPOINT)

    def _is(self, kind: Kind) -> bool:
        """Whether it happens now; once in a call."""
        if self._kind != kind:
            return False
        self._kind = None
        self.broken += 1
        return True


class Unreliable(AwsFuse):
    """Anything may happen at any call."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)

    def choose(self, number: int) -> Kind | None:
        """Once in so many calls."""
        return self._random.choice(KINDS) if self._random.random() < LIKELIHOOD else None


def breaks(unbroken: AwsFuse) -> list[Break]:
    """All that may happen at the calls of a run, but for what is the same as something else.

    Who dies before the first or after the last call of a port's dies before or after the port's: test_g09_port_calls.
    """
    known = {(number, "dies before") for number in unbroken.firsts}
    known |= {(number, "dies after") for number in unbroken.lasts}
    return [
        Break(number, kind)
        for number, operation in enumerate(unbroken.calls)
        for kind in KINDS
        if (kind == "is refused" or operation not in READS) and (number, kind) not in known
    ]
