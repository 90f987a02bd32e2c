"""Runs one request again and again, each time by one port call further.

Between two port calls a master computes with what it has heard, and with nothing else. So a request that stands at a
port call is described by the answers before it, and running it again with these answers leads to the same call.
"""

from typing import Any, NamedTuple, cast

from cloudpar_master.ports import PackageStore
from cloudpar_protocol.errors import RequestError
from support.checks import hold

from .deployment import PARTS, PortCall


class Itself(NamedTuple):
    """Stands for an answer that is one of the call's own arguments: `create` answers the spec that it has stored."""

    argument: int


class Answered(NamedTuple):
    """A call that was carried out, when that was, and its answer. An answer may be an error."""

    text: str
    at: float
    answer: Any


class Next(BaseException):
    """The request stands at its next port call. No code of the master may catch this."""

    def __init__(self, call: PortCall) -> None:
        super().__init__(call.text)
        self.call = call


class Tape:
    """The answers that a request has had, and gets again. It is also the clock of the request."""

    def __init__(self, answers: tuple[Answered, ...], now: float) -> None:
        self._answers = answers
        self._now = now
        self._at = 0

    def now(self) -> float:
        """Return what the clock showed when the request was here: with another time it might do something else."""
        return self._now if self._at == len(self._answers) else self._answers[self._at].at

    def date(self, at: float) -> float:
        """Return the same time."""
        return at

    def call(self, part: str, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Answer a port call from the tape.

        Raises:
            Next: The tape ends here.
        """
        call = PortCall(part, name, arguments, named)
        if self._at == len(self._answers):
            raise Next(call)
        text, _, answer = self._answers[self._at]
        self._at += 1
        hold(text == call.text, "a repeated request calls", call.text, "in place of", text)
        if isinstance(answer, Itself):
            return arguments[answer.argument]
        if isinstance(answer, RequestError):
            raise answer
        return answer

    def port(self, part: str) -> Any:
        """Return a port whose calls this tape answers."""
        hold(part in PARTS, part)
        return _Port(self, part)


class _Port:
    def __init__(self, tape: Tape, part: str) -> None:
        self._tape = tape
        self._part = part

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            return self._tape.call(self._part, name, arguments, named)

        return call


class NewerRelease:
    """A package store of a release that writes heads which earlier releases do not fold."""

    def __init__(self, packages: PackageStore, schema: int) -> None:
        self._packages = packages
        self._schema = schema

    def create(self, spec: Any, head: Any) -> Any:
        """See the port."""
        head.schema = self._schema
        return self._packages.create(spec, head)

    def save(self, head: Any, *more: Any) -> bool:
        """See the port."""
        head.schema = self._schema
        return self._packages.save(head, *more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._packages, name)


def newer(packages: PackageStore, schema: int) -> PackageStore:
    """Wrap the package store of a master of a later release."""
    return cast("PackageStore", NewerRelease(packages, schema))
