"""The real services with ports in memory, driven by the steps of the specification and seen as its states."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cloudpar_master.core import quota
from cloudpar_master.core.effects import Effect, Reserve, Send, Settle
from cloudpar_master.core.events import Event
from cloudpar_master.core.head import Head
from cloudpar_master.core.policy import Policy
from cloudpar_master.services import folding, receiver
from cloudpar_master.services.effect_runner import EffectRunner
from cloudpar_master.services.folding import Folding
from cloudpar_master.services.steps import finish
from cloudpar_protocol.payloads import Range, TaskResult
from cloudpar_protocol.worker_messages import GiveBack, Lease, Publication, PublishResults, RetrieveTasks, Return
from support.backends import backend_on
from support.clock import SetClock
from support.ids import CountedIds
from support.memory.stores import Data, over
from support.world import World

from .mailbox import Letter, Mailbox
from .values import State
from .view import UNIT_US, Drift, View, counted

POLICY = Policy(slice_us=UNIT_US, lease_s=100.0)
"""One slice is one unit. Two lease times are longer than all waits of a behaviour before slices are requested again."""


class Gate:
    """Holds effects back, so that each is a step of its own. An effect that is held back stays pending.

    Attributes:
        opened: The package and the kind of the effect that may be carried out next, once.
        loses: Whether the answer to this effect is lost.
    """

    def __init__(self) -> None:
        self.opened: tuple[str, type[Effect]] | None = None
        self.loses = False

    def runner(self) -> type[EffectRunner]:
        """Return what carries effects out instead of EffectRunner."""
        gate = self

        class Gated(EffectRunner):
            def answer(self, head: Head, effect: Effect) -> Event | None:
                if gate.opened != (head.package_id, type(effect)):
                    return None
                gate.opened = None
                answer = super().answer(head, effect)
                return None if gate.loses else answer

        return Gated


class Machine:
    """One master, one account, its packages, and the workers.

    Time passes for each package alone: the clocks of masters differ, and one package's wait must not end another's.
    """

    def __init__(self, constants: Mapping[str, Any], folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._gate, self._mailbox, self._clock, self._data = Gate(), Mailbox(), SetClock(), Data()
        patch.setattr(folding, "EffectRunner", self._gate.runner())
        patch.setattr(quota, "MARGIN_US", UNIT_US)  # all amounts are whole units
        patch.setattr(receiver, "LARGEST_RECEIVES", constants["Deliveries"])
        stores = over(self._data, folder, self._clock, CountedIds())._replace(queue=self._mailbox)
        self._world = World(backend_on(stores, self._clock, POLICY), self._clock)
        account = self._account = self._world.account("ann", constants["Quota"] * UNIT_US)
        count, self._deliveries = constants["Count"], constants["Deliveries"]
        self._ids = {
            name: self._world.start(account, count, chunksize=constants["ChunkSize"])
            for name in sorted(constants["Packages"])
        }
        self._view = View(count, self._ids, stores.packages, self._data)
        self._times = dict.fromkeys(self._ids, self._clock.now())
        self._leases: dict[tuple[Any, ...], Lease] = {}
        self._seq = 0
        self.steps: dict[str, Callable[..., None]] = {
            "Reserve": lambda name, lost: self._effect(name, Reserve, lost=lost),
            "Send": lambda name, lost: self._effect(name, Send, lost=lost),
            "Settle": lambda name, lost: self._effect(name, Settle, lost=lost),
            "Retrieve": self._retrieve,
            "ReportLost": self._report_lost,
            "LoseMessage": lambda message: self._mailbox.letters.remove(self._letter(message)),
            "EndLease": lambda message, _zombie: self._end_lease(message),
            "Publish": self._publish,
            "CloseLease": lambda message, kept: self._close(message, kept=kept),
            "GiveUp": self._give_up,
            "Cancel": lambda name: self._cancel(name, None),
            "CancelOne": lambda name, task: self._cancel(name, [(task - 1, task)]),
            "Expire": lambda name: self._pass_time(name, self._view.head(name).started_at + POLICY.lifetime_s),
            "Wake": lambda name: self._pass_time(name, self._view.head(name).quota.ask_again_at),
            "Wait": lambda name: self._pass_time(name, self._view.head(name).life.settle_at or 0.0),
        }

    # steps

    def take(self, name: str, *arguments: Any) -> None:
        """Carry out a step of the specification.

        Raises:
            Drift: The master does not do it.
        """
        first = arguments[0]
        self._clock.time = self._times[first if isinstance(first, str) else first["package"]]
        self.steps[name](*arguments)

    def _effect(self, name: str, kind: type[Effect], *, lost: bool) -> None:
        self._gate.opened, self._gate.loses = (self._ids[name], kind), lost
        self._fold(name)
        if self._gate.opened is not None:
            raise Drift(f"the effect {kind.__name__} of package {name} is not pending")

    def _fold(self, name: str) -> None:
        Folding(self._world.backend).advance(self._ids[name], due=True)

    def _pass_time(self, name: str, until: float) -> None:
        self._times[name] = self._clock.time = max(self._times[name], until)
        self._fold(name)

    def _retrieve(self, message: State) -> None:
        self._mailbox.chosen = self._letter(message)
        # A worker that has other work (`besides`) gets this chunk only, and widens no windows.
        request = RetrieveTasks(
            attempt_id=f"attempt {self._next_seq()}", worker_id="w", executors=1, chunks=1, besides=["other"]
        )
        for lease in self._world.worker.retrieve_tasks(request).leases:
            self._leases[_key(message, message["receives"] + 1)] = lease

    def _end_lease(self, message: State) -> None:
        self._mailbox.end_lease(self._letter(message), self._deliveries)

    def _report_lost(self, message: State) -> None:
        letter = self._letter(message)
        self._world.timer.lost(self._mailbox.message(letter))
        self._mailbox.letters.remove(letter)

    def _publish(self, message: State, task: int) -> None:
        lease = self._lease(message)
        generation = self._view.generation(message["package"], lease.generation)
        cost = 2 if task == 1 else 1
        result = TaskResult(task - 1, "ok", cost * UNIT_US, data=f"{generation}.{lease.attempt}".encode())
        self._publication(lease, [result], closes=False)

    def _close(self, message: State, *, kept: bool) -> None:
        self._mailbox.keeps = kept
        self._publication(self._lease(message), [], closes=True)
        self._mailbox.keeps = False

    def _publication(self, lease: Lease, results: list[TaskResult], *, closes: bool) -> None:
        publication = Publication(**lease.identity(), seq=self._next_seq(), results=results, closes=closes)
        finish(
            self._world.worker.publish_results(PublishResults(worker_id="w", executors=1, publications=[publication]))
        )

    def _give_up(self, message: State) -> None:
        lease = self._lease(message)
        back = Return(
            **lease.identity(), seq=self._next_seq(), ranges=lease.ranges, closes=True, attempt=lease.attempt,
            used_us=UNIT_US,
        )  # fmt: skip
        self._world.worker.give_back(GiveBack(worker_id="w", returns=[back]))

    def _cancel(self, name: str, tasks: list[Range] | None) -> None:
        self._world.cancel(self._account, self._ids[name], ranges=tasks)

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def _lease(self, message: State) -> Lease:
        return self._leases[_key(message, message["receives"])]

    def _letter(self, message: State) -> Letter:
        letters = self._mailbox.letters
        if message["at"] == "leased":
            found = [letter for letter in letters if letter.receipt == self._lease(message).receipt]
        else:
            found = [letter for letter in letters if self._view.message(letter, []) == counted(message)]
        if not found:
            raise Drift(f"the queue does not have the message {message}")
        return found[0]

    def seen(self) -> State:
        """Return the state of the master as the specification has it."""
        left = {lease.receipt: lease.ranges for lease in self._leases.values()}
        return self._view.state(self._mailbox.letters, left)


def _key(message: State, receives: int) -> tuple[Any, ...]:
    return (*(message[field] for field in ("package", "tasks", "gen", "losses", "copy")), receives)
