"""A master that may die, data that stay, and callers that retry as the real ones do."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from cloudpar_master.adapters.key_safe import AesGcmSafe
from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.backend import Backend, hash_token
from cloudpar_master.services.dispatcher import Dispatcher
from cloudpar_master.services.folding import Folding
from cloudpar_master.services.steps import finish
from cloudpar_master.services.timer import Timer
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import CreateAccount
from cloudpar_protocol.errors import Unavailable
from cloudpar_protocol.routes import ReplyT, RequestT, Route
from support.backends import ADMIN_TOKEN, WORKER_TOKEN, backend_on, call
from support.clock import SetClock
from support.ids import CountedIds
from support.stores import Factory, Stores

from .crashing import Crash, Fuse, fused
from .rival import Contended

TURN_S = 1.0
TURNS = 1_000
"""Far more turns than any scenario needs: a run that needs more makes no progress. If a call of the timer fails, the
timer puts the package off for 30 turns."""

TIMER_S = 60.0
"""The time between two runs of the timer on AWS, in seconds."""

POLICY = Policy(first_window=1, lease_s=3.0, slice_us=10_000)
"""A worker beats in the first turn of a chunk only, and a chunk has two tasks of one turn each. So a lease lasts longer
than two turns: otherwise the worker whose step comes first in a turn would get the other worker's chunk."""


class World:
    """One deployment, served by one process after another.

    Runs may follow each other on the same data: each has an account of its own, with the run's name.
    """

    def __init__(
        self,
        factory: Factory,
        folder: Path,
        clock: SetClock,
        name: str,
        fuse: Fuse,
        *,
        granted_us: int,
        rival: bool,
        policy: Policy,
    ) -> None:
        self.name = name
        self.clock = clock
        self.ids = CountedIds(name)
        self.fuse = fuse
        self.crashes: list[str] = []
        self._factory = factory
        self._folder = folder
        self._rival = rival
        self._policy = policy
        self._secret = b"the safe's".ljust(32)
        self._tokens = {"user": f"a user's {name}", "worker": WORKER_TOKEN, "admin": ADMIN_TOKEN}
        self._stack = ExitStack()
        self._start()
        account = CreateAccount(
            idempotency_key=name, name=name, token_hash=hash_token(self._tokens["user"]), quota_us=granted_us
        )
        self.account_id = self.ask("admin", routes.CREATE_ACCOUNT, account).account.account_id

    def _start(self) -> None:
        """Start a process on the same data."""
        self._stack.close()
        self.stores: Stores = self._stack.enter_context(self._factory(self._folder, self.clock))
        backend = self._backend(self.fuse.wire(self.stores))
        backend = backend._replace(
            fleet=fused(backend.fleet, "fleet", self.fuse), safe=fused(backend.safe, "safe", self.fuse)
        )
        if self._rival:
            rival = Folding(self._backend(self.stores))
            contended: Any = Contended(backend.packages, lambda package_id: rival.advance(package_id, due=True))
            backend = backend._replace(packages=contended)
        self._dispatcher = Dispatcher(backend)
        self._timer = Timer(backend)

    def _backend(self, ports: Stores) -> Backend:
        return backend_on(ports, self.clock, self._policy, ids=self.ids, safe=AesGcmSafe(lambda: self._secret))

    def lose_secret(self) -> None:
        """Give the master another secret: it cannot decrypt the keys that accounts have."""
        self._secret = b"another".ljust(32)
        self._start()

    def restart(self) -> Stores:
        """Start a process that remembers nothing, and return its adapters."""
        self._start()
        return self.stores

    def _die(self, crash: Crash) -> None:
        self.crashes.append(str(crash))
        self.clock.move(self.fuse.away_s)
        self._start()

    def ask(self, role: str, route: Route[RequestT, ReplyT], request: Struct) -> ReplyT:
        """Make a call, and repeat it with the same content until it is answered."""
        while True:
            reply = self.ask_or_die(role, route, request)
            if reply is not None:
                return reply

    def ask_or_die(self, role: str, route: Route[RequestT, ReplyT], request: Struct) -> ReplyT | None:
        """Make a call for a caller that dies together with the master. None: both have died."""
        while True:
            try:
                return self.ask_once(role, route, request)
            except Crash as crash:
                self._die(crash)
                return None
            except Exception as error:
                if not self._passes(error):
                    raise

    def _passes(self, error: Exception) -> bool:
        """Return whether a caller that receives this error tries again."""
        return self.fuse.passes(error) or (self._rival and isinstance(error, Unavailable))

    def ask_once(self, role: str, route: Route[RequestT, ReplyT], request: Struct) -> ReplyT:
        """Make a call, over the wire and back."""
        self.fuse.start_request()
        return call(self._dispatcher, self._tokens[role], route, request)

    def pass_turn(self, seconds: float = TURN_S) -> None:
        """Let the timer do its turn, and time pass."""
        self.fuse.start_request()
        try:
            finish(self._timer.tick())
        except Crash as crash:
            self._die(crash)
        except Exception as error:
            if not self._passes(error):
                raise
        self.clock.move(seconds)

    def account(self) -> AccountRecord:
        """Return the account as it is now. This read never dies."""
        account = self.stores.accounts.get(self.account_id)
        assert account is not None
        return account

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
