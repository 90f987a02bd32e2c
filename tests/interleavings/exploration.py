"""Explores one scenario from its start to its ends."""

from collections.abc import Callable

from cloudpar_master.ports import AccountRecord
from support.checks import Broken
from support.clock import NOW

from .deployment import AccountRows
from .ending import Ending, finishers
from .scenario import Scenario
from .search import Found, Search
from .space import FIRST_ACTOR, Space, State


def explore(scenario: Scenario, deviations: int, progress: Callable[[int], None] = lambda _: None) -> Found:
    """Explore a scenario.

    Args:
        scenario: Who does what.
        deviations: How many deviations a schedule has at most.
        progress: Gets the number of states so far, from time to time.

    Raises:
        Broken: Something does not hold.
    """
    space = Space(scenario.actors + finishers(scenario), scenario.policy)
    ending = Ending(scenario, space)
    search = Search(space, len(scenario.actors), deviations, ending.check, progress)
    try:
        return search.run(prepared(scenario, space))
    except Broken as broken:
        broken.add_note(f"scenario: {scenario.name}")
        raise


def prepared(scenario: Scenario, space: Space) -> State:
    """Return the state in which the exploration starts."""
    state = space.start()
    rows = AccountRows(accounts={
        name: AccountRecord(name, name, name, "active", scenario.quota_us, 0, 0, NOW)
        for name in dict.fromkeys(actor.account for actor in scenario.actors)
    })  # fmt: skip
    state = space.changed(state, "accounts", rows)
    names = [actor.name for actor in scenario.actors]
    for name in scenario.before:
        actor = names.index(name)
        state = space.step(state, actor, state)
        while not space.idle[state[FIRST_ACTOR + actor]]:
            state = space.step(state, actor, state)
    return state
