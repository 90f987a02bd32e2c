"""The states of a scenario, and the steps between them.

A state is a tuple of numbers: the time, one number for each part of the data, and one for each actor. Equal contents
have equal numbers, so equal states are found at once, and no step is computed twice: what a request calls next depends
only on what its actor knows and on the answers so far, and what the call does depends only on its part of the data.
"""

from typing import Any, Final, NamedTuple
from unittest.mock import patch

from msgspec.structs import replace

from cloudpar_master.core.head import package
from cloudpar_master.core.policy import Policy
from cloudpar_protocol.errors import RequestError
from support.checks import Broken
from support.clock import NOW

from .checks import check_part
from .deployment import PARTS, PortCall, bytes_of, content_of, empty, perform
from .desk import Actor, Desk, Memory
from .tape import Answered, Itself, Next, Tape

State = tuple[int, ...]
"""The milliseconds since the start, a number for each of PARTS, and a number for each actor."""

FIRST_ACTOR: Final = 1 + len(PARTS)

TRIES: Final = 4
"""How many times an actor tries a deed before it gives up and ends."""


class Local(NamedTuple):
    """Where an actor is: what it knows, and the answers to the port calls of its request."""

    actor: int
    memory: Memory
    answers: tuple[Answered, ...] = ()


class Onward(NamedTuple):
    """What an actor does next: it makes the port call `call`, or (None) its request ends, and it is at `local` then."""

    call: int | None
    local: int


class Space:
    """All that was computed about the actors of a scenario.

    Attributes:
        idle: For each number of an actor: whether it has no request under way.
        ended: Whether it has nothing left to do.
    """

    def __init__(self, actors: tuple[Actor, ...], policy: Policy) -> None:
        self.actors = actors
        self.idle: list[bool] = []
        self.ended: list[bool] = []
        self._policy = policy
        self._bodies: list[list[bytes]] = [[] for _ in PARTS]
        self._numbers: list[dict[bytes, int]] = [{} for _ in PARTS]
        self._locals: list[Local] = []
        self._local_numbers: dict[tuple[int, bytes], int] = {}
        self._children: dict[tuple[int, bytes, int], int] = {}
        self._onward: dict[tuple[int, int], Onward] = {}
        self._calls: list[PortCall] = []
        self._call_numbers: dict[tuple[str, bytes], int] = {}
        self._effects: dict[tuple[int, int, int], tuple[int, Answered, bytes]] = {}

    def start(self) -> State:
        """Return the state of an empty deployment, in which no actor has done anything."""
        parts = [self._part(at, empty(part)) for at, part in enumerate(PARTS)]
        return (0, *parts, *(self.place(at, Memory()) for at in range(len(self.actors))))

    def content(self, state: State, part: str) -> Any:
        """Decode a part of the data."""
        at = PARTS.index(part)
        return content_of(part, self._bodies[at][state[1 + at]])

    def changed(self, state: State, part: str, content: Any) -> State:
        """Return the state with other data in one part."""
        at = PARTS.index(part)
        return (*state[: 1 + at], self._part(at, bytes_of(content)), *state[2 + at :])

    def memory(self, state: State, actor: int) -> Memory:
        """Return what an actor knows."""
        return self._locals[state[FIRST_ACTOR + actor]].memory

    def place(self, actor: int, memory: Memory) -> int:
        """Return the number of an actor that knows this and has no request under way."""
        key = actor, bytes_of(memory)
        if key not in self._local_numbers:
            self._local_numbers[key] = self._add(Local(actor, memory))
        return self._local_numbers[key]

    def step(self, state: State, actor: int, start: State) -> State:
        """Let an actor make its next port call. If the request makes no further one, it ends in the same step."""
        at, now = FIRST_ACTOR + actor, state[0]
        local = state[at]
        deed = self._deed(local)
        if deed.seconds:
            later = self.place(actor, replace(self._locals[local].memory, at=self._locals[local].memory.at + 1))
            return (now + round(1000 * deed.seconds), *state[1:at], later, *state[at + 1 :])
        if deed.restores:
            return self._restore(state, actor, start)
        onward = self._ahead(local, now)
        parts = list(state)
        if onward.call is not None:
            call = self._calls[onward.call]
            part = PARTS.index(call.part)
            parts[1 + part], answered, body = self._perform(onward.call, part, state[1 + part], now)
            local = self._child(local, answered, body, now)
            onward = self._ahead(local, now)
        parts[at] = local if onward.call is not None else onward.local
        return tuple(parts)

    def crash(self, state: State, actor: int) -> State:
        """Let the process end that carries an actor's request out."""
        at = FIRST_ACTOR + actor
        memory, who = self._locals[state[at]].memory, self.actors[actor]
        after = self._gives_up(actor, memory) if who.mortal else self._again(actor, memory)
        return (*state[:at], self.place(actor, after), *state[at + 1 :])

    def text(self, state: State, actor: int) -> str:
        """Describe an actor's next step."""
        local = state[FIRST_ACTOR + actor]
        deed, tries = self._deed(local), self._locals[local].memory.tries
        onward = None if deed.seconds or deed.restores else self._ahead(local, state[0])
        call = "" if onward is None or onward.call is None else f": {self._calls[onward.call].text}"
        return f"{self.actors[actor].name}, {deed.text}{f' (try {tries + 1})' if tries else ''}{call}"

    def _deed(self, local: int) -> Any:
        each = self._locals[local]
        return self.actors[each.actor].deeds[each.memory.at]

    def _part(self, part: int, body: bytes) -> int:
        number = self._numbers[part].get(body)
        if number is None:
            number = self._numbers[part][body] = len(self._bodies[part])
            self._bodies[part].append(body)
            check_part(PARTS[part], content_of(PARTS[part], body))
        return number

    def _add(self, local: Local) -> int:
        self._locals.append(local)
        self.idle.append(not local.answers)
        self.ended.append(local.memory.at >= len(self.actors[local.actor].deeds))
        return len(self._locals) - 1

    def _child(self, local: int, answered: Answered, body: bytes, now: int) -> int:
        key = local, body, now
        number = self._children.get(key)
        if number is None:
            before = self._locals[local]
            number = self._children[key] = self._add(before._replace(answers=(*before.answers, answered)))
        return number

    def _perform(self, number: int, part: int, before: int, now: int) -> tuple[int, Answered, bytes]:
        """Carry a port call out. Returns its part's data after it, the answer, and the bytes of the answer."""
        key = number, before, now
        known = self._effects.get(key)
        if known is None:
            call, body, time = self._calls[number], self._bodies[part][before], NOW + now / 1000
            try:
                answer, body = perform(call, body, time)
            except RequestError as error:
                answer = error
            heard = bytes_of(repr(answer) if isinstance(answer, RequestError) else answer)
            if call.name == "create" and answer is call.arguments[0]:
                # The caller looks whether it gets its own object, and a repeated request has another object.
                answer, heard = Itself(0), b""
            known = self._effects[key] = self._part(part, body), Answered(call.text, time, answer), heard
        return known

    def _ahead(self, local: int, now: int) -> Onward:
        key = local, now
        onward = self._onward.get(key)
        if onward is None:
            onward = self._onward[key] = self._run(local, now)
        return onward

    def _run(self, local: int, now: int) -> Onward:
        """Run the request of an actor from its start to the port call that it makes next, or to its end."""
        actor, memory, answers = self._locals[local]
        who = self.actors[actor]
        desk = Desk(who, memory, Tape(answers, NOW + now / 1000), self._policy)
        try:
            with patch.object(package, "SCHEMA", who.schema):
                after = who.deeds[memory.at].do(desk, memory)
        except Next as ahead:
            return Onward(self._call(ahead.call), local)
        except RequestError as error:
            after = self._after(actor, memory, error)
        except ExceptionGroup as group:
            after = self._after(actor, memory, *group.exceptions)
        except Broken:
            raise
        except Exception as error:
            raise Broken(f"{who.name}, {who.deeds[memory.at].text}: the master failed: {error!r}") from error
        else:
            after = replace(after, at=memory.at + 1, tries=0)
        return Onward(None, self.place(actor, after))

    def _after(self, actor: int, memory: Memory, *errors: Exception) -> Memory:
        for error in errors:
            if not isinstance(error, RequestError):
                raise Broken(f"{self.actors[actor].name}: the master failed: {error!r}") from error
            if not error.retryable:
                return replace(self._gives_up(actor, memory), last_answer=error.code)
        return self._again(actor, memory)

    def _again(self, actor: int, memory: Memory) -> Memory:
        again = replace(memory, tries=memory.tries + 1)
        return again if again.tries < TRIES else self._gives_up(actor, memory)

    def _gives_up(self, actor: int, memory: Memory) -> Memory:
        return replace(memory, at=len(self.actors[actor].deeds), tries=0)

    def _call(self, call: PortCall) -> int:
        key = call.text, bytes_of((call.arguments, call.named))
        number = self._call_numbers.get(key)
        if number is None:
            number = self._call_numbers[key] = len(self._calls)
            self._calls.append(call)
        return number

    def _restore(self, state: State, actor: int, start: State) -> State:
        """Bring data back, end all requests, and let their actors repeat them. Clients then read from the start."""
        restored = self._deed(state[FIRST_ACTOR + actor]).restores
        parts = [start[1 + at] if part in restored else state[1 + at] for at, part in enumerate(PARTS)]
        after = (state[0], *parts, *state[FIRST_ACTOR:])
        for each in range(len(self.actors)):
            if not self.idle[after[FIRST_ACTOR + each]]:
                after = self.crash(after, each)
            memory = self.memory(after, each)
            knows = replace(memory, at=memory.at + (each == actor), started=False, cursor=0, results={})
            after = (*after[: FIRST_ACTOR + each], self.place(each, knows), *after[FIRST_ACTOR + each + 1 :])
        return after
