"""What an actor remembers between its requests, and the master that carries one of them out."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from msgspec import Struct

from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.account_service import AccountService
from cloudpar_master.services.backend import Backend
from cloudpar_master.services.client_service import ClientService
from cloudpar_master.services.timer import Timer
from cloudpar_master.services.worker_service import WorkerService
from cloudpar_protocol.seals import package_id
from cloudpar_protocol.worker_messages import LeaseRef
from support.clock import NOW
from support.ids import CountedIds

from .tape import Tape, newer


class Held(Struct, frozen=True):
    """A lease that a worker has.

    Attributes:
        todo: The tasks without a published result.
        seq: How many publications and give-backs of this lease there were.
    """

    ref: LeaseRef
    todo: tuple[int, ...]
    attempt: int
    seq: int = 0


class Memory(Struct, frozen=True):
    """What an actor knows.

    Attributes:
        at: The number of its next deed.
        tries: How many tries of this deed have failed.
        cursor, results: How far a client has read, and the results that it has.
        last_answer: The last state of its package, or the error, that a master has answered.
        started: Whether a master has confirmed the client's start.
        leases: What a worker has to do.
    """

    at: int = 0
    tries: int = 0
    cursor: int = 0
    results: dict[int, bytes] = {}
    last_answer: str = ""
    started: bool = False
    leases: tuple[Held, ...] = ()


class Actor(NamedTuple):
    """A client, a worker, the timer, an operator or the clock.

    Attributes:
        deeds: What it does, one after the other. Each request goes to a process of its own, as on Lambda.
        account, key: Whose package it is, and the idempotency key of the package.
        schema: The schema of heads that the actor's masters know.
        mortal: It ends with a master that carries its request out; any other actor repeats the request.
    """

    name: str
    deeds: "tuple[Deed, ...]"
    account: str = "a1"
    key: str = "k"
    schema: int = 1
    mortal: bool = False

    @property
    def package_id(self) -> str:
        """The id of the actor's package."""
        return package_id(self.account, self.key, sealed=False)


class Desk:
    """A process of the master, which carries out one request of one actor."""

    def __init__(self, actor: Actor, memory: Memory, tape: Tape, policy: Policy) -> None:
        self.actor = actor
        packages = tape.port("packages")
        self.damage = packages.damage
        self.blobs = tape.port("blobs")
        self.backend = Backend(
            packages=packages if actor.schema == 1 else newer(packages, actor.schema),
            accounts=tape.port("accounts"),
            queue=tape.port("queue"),
            registry=tape.port("registry"),
            blobs=self.blobs,
            clock=tape,
            ids=CountedIds(f"{actor.name}{memory.at}x{memory.tries}x"),
            policy=policy,
            worker_token_hash="",
            admin_token_hash="",
        )

    @property
    def account(self) -> AccountRecord:
        """The account of the actor, as the master knew it when the account was made."""
        return AccountRecord(self.actor.account, self.actor.account, "", "active", 1, 0, 0, NOW)

    @property
    def client(self) -> ClientService:
        """The routes of users."""
        return ClientService(self.backend)

    @property
    def worker(self) -> WorkerService:
        """The routes of workers."""
        service = WorkerService(self.backend)
        # As in a process that has folded the package before: it knows whether publications may wait.
        service._folding._pausing[self.actor.package_id] = None
        return service

    @property
    def operator(self) -> AccountService:
        """The routes of operators."""
        return AccountService(self.backend, cast("Any", None))

    @property
    def timer(self) -> Timer:
        """The timer."""
        return Timer(self.backend)


class Deed(NamedTuple):
    """Something that an actor does.

    Attributes:
        text: What it is, for people.
        do: Makes the requests, and returns what the actor knows then.
        seconds: How much time passes; for the clock, which makes no request.
        restores: What a restore brings back as it was when the exploration started; for an operator who makes no
            request.
    """

    text: str
    do: Callable[[Desk, Memory], Memory] = lambda _, memory: memory
    seconds: float = 0.0
    restores: tuple[str, ...] = ()
