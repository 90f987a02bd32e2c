"""Turns the bytes and the token of a request into a reply, for every server."""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from msgspec import Struct

from cloudpar_master.ports import AccountRecord, Fit
from cloudpar_protocol import codec, routes
from cloudpar_protocol.errors import NotFound
from cloudpar_protocol.routes import Route
from cloudpar_protocol.worker_messages import RetrieveTasks

from .access import Caller, identify, permit
from .account_service import AccountService
from .backend import Backend
from .client_service import ClientService
from .folding import Folding
from .placement import fit_of
from .request_rate import RequestRate
from .steps import Steps, finish
from .stored_bytes import StoredBytes
from .worker_list import WorkerList
from .worker_service import WorkerService

BY_NAME: dict[str, Route[Any, Any]] = {route.name: route for route in routes.ROUTES}
OPEN_TO_ADMIN = frozenset({routes.LIST_PACKAGES.name, routes.CANCEL_TASKS.name})


class Call(NamedTuple):
    """A request that may be carried out."""

    route: Route[Any, Any]
    caller: Caller
    request: Any

    @property
    def user(self) -> AccountRecord | None:
        """The caller's account; None if the caller is no user."""
        return self.caller.account


Handler = Callable[[Call], Struct | Steps[Any]]


class Dispatcher:
    """Checks requests, and passes each one to the service of its route."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._rate = RequestRate(backend.clock, backend.policy)
        self.stored = stored = StoredBytes(backend)
        # There is one for all services, because it knows which chunks were sent.
        self.folding = folding = Folding(backend)
        client, worker, account = (
            ClientService(backend, stored, folding),
            WorkerService(backend, folding),
            AccountService(backend, stored, folding),
        )
        workers = WorkerList(backend)
        self._handlers: dict[str, Handler] = {
            routes.HELLO.name: lambda call: account.hello(call.caller.role, call.user, call.request.package_id),
            routes.PREPARE_UPLOADS.name: lambda call: client.prepare_uploads(_owner(call), call.request),
            routes.START_TASKS.name: lambda call: client.start_tasks(_owner(call), call.request),
            routes.AWAIT_TASKS.name: lambda call: client.await_tasks(_owner(call), call.request),
            routes.CANCEL_TASKS.name: lambda call: client.cancel_tasks(call.user, call.request),
            routes.ACKNOWLEDGE.name: lambda call: client.acknowledge(_owner(call), call.request),
            routes.LIST_PACKAGES.name: lambda call: client.list_packages(call.user, call.request),
            routes.RETRIEVE_TASKS.name: lambda call: worker.retrieve_tasks(call.request),
            routes.PREPARE_RESULTS.name: lambda call: worker.prepare_results(call.request),
            routes.PUBLISH_RESULTS.name: lambda call: worker.publish_results(call.request),
            routes.EXTEND_LEASES.name: lambda call: worker.extend_leases(call.request),
            routes.GIVE_BACK.name: lambda call: worker.give_back(call.request),
            routes.CREATE_ACCOUNT.name: lambda call: account.create_account(call.request),
            routes.LIST_ACCOUNTS.name: lambda call: account.list_accounts(call.request),
            routes.GRANT_QUOTA.name: lambda call: account.grant_quota(call.request),
            routes.REVOKE_ACCOUNT.name: lambda call: account.revoke_account(call.request),
            routes.ROTATE_SEAL.name: lambda call: account.rotate_seal(call.request),
            routes.SET_ROLE.name: lambda call: account.set_role(call.request),
            routes.SET_NETWORK.name: lambda call: account.set_network(call.request),
            routes.LIST_USAGE.name: lambda call: account.list_usage(call.request),
            routes.LIST_WORKERS.name: lambda _: workers.list_workers(),
        }

    def admit(self, name: str, token: str | None, body: bytes, media: str) -> Call:
        """Check a request POST /v1/<name>: the route, the token, the account's request rate, the role and the body.

        Raises:
            RequestError: The request may not be carried out; the error says why.
        """
        caller = self.caller(name, token)
        self.count(caller)
        return self.enter(name, caller, body, media)

    def caller(self, name: str, token: str | None) -> Caller:
        """Check the token of POST /v1/<name>.

        Raises:
            RequestError: There is no such route, or the token is not valid.
        """
        _route(name)
        return identify(self._backend, token)

    def count(self, caller: Caller) -> None:
        """Count a request of this caller. Raises like `RequestRate.admit`."""
        if caller.account is not None:
            self._rate.admit(caller.account)

    @staticmethod
    def enter(name: str, caller: Caller, body: bytes, media: str) -> Call:
        """Check the route, the role and the body of a request whose caller is known already.

        Raises:
            RequestError: The request may not be carried out; the error says why.
        """
        route = _route(name)
        if not (caller.role == "admin" and name in OPEN_TO_ADMIN):
            permit(caller, route.role, name)
        return Call(route, caller, codec.decode(body, route.request, media))

    def fit(self, request: RetrieveTasks) -> Fit:
        """Return which messages the worker of a retrieval can take. Raises like `fit_of`."""
        return fit_of(request, self._backend)

    def perform(self, call: Call) -> Struct:
        """Carry out a request that was admitted, in one step. Raises like `steps`."""
        return finish(self.steps(call))

    def steps(self, call: Call) -> Steps[Struct]:
        """Carry out a request that was admitted, in steps if it may take long.

        Raises:
            RequestError: The service refuses the request, or cannot carry it out now.
        """
        if call.route in (routes.PREPARE_UPLOADS, routes.START_TASKS) and call.user is not None:
            yield from self.stored.renew(call.user.account_id)
        reply = self._handlers[call.route.name](call)
        return (yield from reply) if isinstance(reply, Generator) else reply


def _route(name: str) -> Route[Any, Any]:
    route = BY_NAME.get(name)
    if route is None:
        raise NotFound(f"no route /v1/{name}: there are {', '.join(sorted(BY_NAME))}")
    return route


def _owner(call: Call) -> AccountRecord:
    if call.user is None:
        raise AssertionError(call.route.name)
    return call.user
