"""Explores the interleavings of a scenario, those with the fewest deviations first.

A deviation is a switch to another actor while a request is under way, or a crash of the process that carries it out.
Between requests, any actor may go on. Each state is explored with its fewest deviations, so a schedule that breaks
something has as few deviations as possible.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from support.checks import Broken

from .space import FIRST_ACTOR, Space, State

ANY: Final = -1
"""Any actor may make the next step. Otherwise the number of the actor whose request goes on without a deviation."""

EVERY: Final = 50_000
"""The search reports its progress each time it has found this many states more."""


class Trail(NamedTuple):
    """How a state was reached: by a step of an actor, or the crash of its request. `before` is None at the start."""

    before: "Trail | None"
    state: State
    actor: int = ANY
    crash: bool = False


class Node(NamedTuple):
    """A state that is to be explored, and which actor goes on."""

    trail: Trail
    current: int


class Found(NamedTuple):
    """What a search has explored: different states, steps between them, and states at which all actors were done."""

    states: int
    steps: int
    ends: int


class Search:
    """Explores one scenario from a state.

    Args:
        actors: How many of the space's actors take part.
        most: How many deviations a schedule has at most.
        end: Checks a state in which all actors are done.
        progress: Gets the number of states so far, from time to time.
    """

    def __init__(
        self, space: Space, actors: int, most: int, end: Callable[[State], None], progress: Callable[[int], None]
    ) -> None:
        self._space = space
        self._actors = range(actors)
        self._most = most
        self._end = end
        self._progress = progress
        self._seen: dict[State, int] = {}
        self._steps = 0
        self._ends = 0
        self._stack: list[Node] = []
        self._later: list[Node] = []

    def run(self, first: State) -> Found:
        """Explore all schedules.

        Raises:
            Broken: Something does not hold. Its note has the schedule.
        """
        self._first = first
        self._later = [Node(Trail(None, first), ANY)]
        for left in range(self._most, -1, -1):
            self._stack, self._later = self._later, []
            while self._stack:
                node = self._stack.pop()
                if self._is_new(node):
                    self._expand(node, deviates=left > 0)
        return Found(len(self._seen), self._steps, self._ends)

    def _is_new(self, node: Node) -> bool:
        """Return whether this state was not explored before, or only with other actors going on."""
        state = node.trail.state
        known, mine = self._seen.get(state, 0), 1 << (node.current + 1)
        if known & (mine | 1):  # `ANY` includes the step of each actor
            return False
        self._seen[state] = known | mine
        if not known and len(self._seen) % EVERY == 0:
            self._progress(len(self._seen))
        return True

    def _expand(self, node: Node, *, deviates: bool) -> None:
        trail, current = node
        space, state = self._space, trail.state
        left = [each for each in self._actors if not space.ended[state[FIRST_ACTOR + each]]]
        if not left:
            self._ends += 1
            self._guard(trail, lambda: self._end(state))
        for actor in left if current == ANY else (current,):
            self._go(trail, actor)
        if deviates:
            under_way = [each for each in left if not space.idle[state[FIRST_ACTOR + each]]]
            for actor in under_way if current == ANY else (current,):
                crashed = Trail(trail, space.crash(state, actor), actor, crash=True)
                self._later.append(Node(crashed, ANY))
            if current != ANY and len(left) > 1:
                self._later.append(Node(trail, ANY))

    def _go(self, trail: Trail, actor: int) -> None:
        self._steps += 1
        after: list[State] = []
        self._guard(trail, lambda: after.append(self._space.step(trail.state, actor, self._first)), actor)
        (state,) = after
        under_way = not self._space.idle[state[FIRST_ACTOR + actor]]
        self._stack.append(Node(Trail(trail, state, actor), actor if under_way else ANY))

    def _guard(self, trail: Trail, check: Callable[[], None], actor: int = ANY) -> None:
        try:
            check()
        except Broken as broken:
            last = [] if actor == ANY else [self._space.text(trail.state, actor)]
            broken.add_note("\n".join([*schedule(self._space, trail), *last]))
            raise


def schedule(space: Space, trail: Trail) -> Sequence[str]:
    """Describe how a state was reached, for people: a line for each run of steps of one actor."""
    lines: list[str] = []
    while trail.before is not None:
        what = space.text(trail.before.state, trail.actor)
        lines.append(f"{what} - the process ends before this" if trail.crash else what)
        trail = trail.before
    lines.reverse()
    return [f"{who}: {', '.join(rest(line) for line in group)}" for who, group in groupby(lines, key=request)]


def request(line: str) -> str:
    """Return who makes which request, of a line of a schedule."""
    return line.partition(": ")[0]


def rest(line: str) -> str:
    """Return which port call a step makes, of a line of a schedule."""
    return line.partition(": ")[2] or "-"
