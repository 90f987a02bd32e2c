"""Runs a deployment on after all actors are done, and checks how everything ends."""

from typing import Final

from cloudpar_master.core.head import Head, stored
from support.checks import hold

from .clients import GONE, READ, TICK
from .deployment import AccountRows, PackageRows, is_damaged
from .desk import Actor, Memory
from .scenario import AGE_S, Scenario
from .space import FIRST_ACTOR, Space, State
from .workers import publish, retrieve

TURNS: Final = 60
"""The turns in which each package ends and is settled, and afterwards all is forgotten."""


def finishers(scenario: Scenario) -> tuple[Actor, ...]:
    """Return the actors that finish what is left: a worker, the timer, and a reader for each client."""
    schema = max(actor.schema for actor in scenario.actors)
    readers = (Actor(f"reader of {actor.name}", (READ,), actor.account, actor.key, schema) for actor in scenario.actors)
    worker = Actor("finisher", (retrieve(10), publish()), schema=schema)
    return (worker, Actor("the last timer", (TICK,), schema=schema), *readers)


class Ending:
    """Checks final states of one scenario."""

    def __init__(self, scenario: Scenario, space: Space) -> None:
        self._scenario = scenario
        self._space = space
        self._actors = len(scenario.actors)
        self._settled: dict[State, State] = {}
        self._well: set[State] = set()

    def check(self, state: State) -> None:
        """Check that after a state everything ends as it should.

        Raises:
            Broken: It does not.
        """
        for each in range(self._actors):
            if self._space.memory(state, each).started:
                hold(self._histories(state, self._scenario.actors[each]), "a package that was started does not exist")
        state = self._settle(state)
        for each in range(self._actors):
            self._read(state, each)
        self._forget(self._data(state))

    def _data(self, state: State) -> State:
        """Return the state without what actors know."""
        return (*state[:FIRST_ACTOR], *self._space.start()[FIRST_ACTOR:])

    def _settle(self, state: State) -> State:
        """Return the state in which all packages have ended and are settled."""
        passed = []
        now = self._data(state)
        for _ in range(TURNS):
            if now in self._settled:
                break
            passed.append(now)
            if all(head.life.ended and head.life.settled for head in self._heads(now)):
                self._check_money(now)
                self._settled[now] = now
                break
            now = self._turn(now, self._scenario.turn_s)
        else:
            hold(False, "a package does not end, or is not settled:", self._heads(now))
        for each in passed:
            self._settled[each] = self._settled[now]
        return (*self._settled[now][:FIRST_ACTOR], *state[FIRST_ACTOR:])

    def _forget(self, now: State) -> None:
        """Check that in the end nothing is left of any package."""
        passed = []
        for _ in range(TURNS):
            if now in self._well:
                break
            passed.append(now)
            rows: PackageRows = self._space.content(now, "packages")
            if not rows.rows and not self._space.content(now, "queue").there:
                break
            now = self._turn(now, AGE_S)
        else:
            hold(False, "packages or messages are left", self._heads(now), self._space.content(now, "queue").there)
        self._well.update(passed)

    def _turn(self, state: State, seconds: float) -> State:
        state = self._run(state, self._actors)
        state = self._run(state, self._actors + 1)
        return self._data((state[0] + round(1000 * seconds), *state[1:]))

    def _run(self, state: State, actor: int) -> State:
        """Let an actor do all its deeds, without interruption."""
        space, at = self._space, FIRST_ACTOR + actor
        state = (*state[:at], space.place(actor, Memory()), *state[at + 1 :])
        while not space.ended[state[at]]:
            state = space.step(state, actor, state)
        answer = space.memory(state, actor).last_answer
        hold(
            answer in {"", "running", "completed", "error", "failed", "cancelled", *GONE},
            "answered at the end:",
            answer,
        )
        return state

    def _read(self, state: State, each: int) -> None:
        """Read the results of a client's package from the start: they are those that the client has read."""
        client, actor = self._space.memory(state, each), self._actors + 2 + each
        if not client.started and not client.results:
            return
        read = self._space.memory(self._run(state, actor), actor)
        if read.last_answer in GONE or self._space.actors[actor].package_id in self._damaged(state):
            return
        hold(read.last_answer != "running", "a settled package runs")
        stored = {f"ok:{key}".encode() for key in self._space.content(state, "blobs").keys}
        for result in read.results.values():
            hold(b"results/" not in result or result in stored, "the blob of a result is gone:", result)
        for index, result in client.results.items():
            hold(read.results.get(index) == result, "the result of", index, "changed:", result, read.results.get(index))

    def _heads(self, state: State) -> list[Head]:
        """Return all heads that can be read."""
        rows: PackageRows = self._space.content(state, "packages")
        return [stored.decode(row.head) for row in rows.rows.values() if not is_damaged(row)]

    def _damaged(self, state: State) -> dict[str, str]:
        """Return the packages whose heads are damaged, each with its account."""
        rows: PackageRows = self._space.content(state, "packages")
        return {row.package_id: row.account_id for row in rows.rows.values() if is_damaged(row)}

    def _histories(self, state: State, actor: Actor) -> list[str]:
        rows: PackageRows = self._space.content(state, "packages")
        return [billing_id for billing_id in rows.histories if billing_id.startswith(actor.package_id)]

    def _check_money(self, state: State) -> None:
        """Check that nothing is reserved, and that each package is charged for its results once.

        Only a damaged head knows what its package has used, so until the package is removed, its slice stays reserved.
        """
        damaged = self._damaged(state)
        accounts: AccountRows = self._space.content(state, "accounts")
        packages: PackageRows = self._space.content(state, "packages")
        for account_id, account in accounts.accounts.items():
            hold(
                account.reserved_us == 0 or account_id in damaged.values(),
                "compute time stays reserved:",
                account,
                accounts.slices,
            )
        for billing_id, history in packages.histories.items():
            if billing_id.rpartition("@")[0] in damaged:
                continue
            hold(billing_id in accounts.charged, billing_id, "is never charged:", history)
            charged_us, committed_us = accounts.charged[billing_id], sum(history.committed.values())
            if self._scenario.short:
                continue
            hold(charged_us >= committed_us, "charged", charged_us, "for results of", committed_us, "us")
            if history.state == "completed" and not history.cancelled:
                hold(charged_us == committed_us, "charged", charged_us, "for results of", committed_us, "us")
