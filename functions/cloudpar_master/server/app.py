"""The routes of the embedded master. Each route parses a request, calls a service and renders the reply."""

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from cloudpar_master.services.bodies import sent_media
from cloudpar_master.services.dispatcher import Call
from cloudpar_protocol import proofs, routes
from cloudpar_protocol.client_messages import AwaitTasksReply, StartTasksReply
from cloudpar_protocol.errors import RequestError

from . import link_base
from .audit_file import AuditFile
from .blob_routes import BlobRoutes
from .bodies import CLIENT_GONE, answer, read_body, refusal
from .connections import admitted, holding
from .failure_log import RETRY_S, FailureLog, unwritable
from .fair_shares import STRANGERS, FairShares
from .long_polling import LongPolling, unless_gone
from .proving import Proving
from .storage_state import StorageState

CROWDED_S: Final = 2.0
"""If a held request gave way to another connection of its account, its client sends the next request after this many
seconds."""


class Calls:
    """Serves POST /v1/{name}, the calls of the protocol."""

    def __init__(
        self,
        long_polling: LongPolling,
        proving: Proving,
        audit: AuditFile,
        failures: FailureLog,
        storage: StorageState,
    ) -> None:
        self._long_polling = long_polling
        self._proving = proving
        self._failures = failures
        self._storage = storage
        self._audit = audit
        self._dispatcher = long_polling.dispatcher

    async def serve(self, request: Request) -> Response:
        """Carry out the call of a request.

        A retrieval or an await with a `hold_s` above 0 is held open until there is something to answer, but not for
        longer than `hold_s`. The handlers of `make_app` answer the errors that this method raises.
        """
        name, caller = request.path_params["name"], None
        try:
            # The token is checked first: a client without a token must not make the master read bodies.
            caller = self._dispatcher.caller(name, self._proving.token(request.headers))
            admitted(request, caller.account.account_id if caller.account else "")
            self._dispatcher.count(caller)
            body = await read_body(request)
        except RequestError:
            await self._long_polling.turn(caller)
            raise
        link_base.note(request)
        await self._long_polling.turn(caller)
        with self._long_polling.serving(caller):
            call = self._dispatcher.enter(name, caller, body, sent_media(request.headers))
        if call.route is routes.EXTEND_LEASES and call.request.unwritable is not None:
            self._storage.note(call.request.unwritable)
        try:
            reply = await self._reply(call, request)
        except (sqlite3.OperationalError, OSError) as error:
            asks = call.route is routes.AWAIT_TASKS and call.request.unwritable
            if not asks or self._failures.note(error, "a request failed") is None:
                raise
            reply = AwaitTasksReply(packages=[], retry_after_s=RETRY_S)
        if reply is None:
            return Response(status_code=CLIENT_GONE)
        if isinstance(reply, AwaitTasksReply):
            reply = replace(reply, unwritable=self._storage.unwritable)
        with self._long_polling.serving(caller):
            return answer(request, body, reply)

    async def _reply(self, call: Call, request: Request) -> Struct | None:
        """Return the reply to a call; None if its caller has hung up."""
        if call.route in (routes.RETRIEVE_TASKS, routes.AWAIT_TASKS) and call.request.hold_s > 0:
            hold = self._long_polling.retrieve if call.route is routes.RETRIEVE_TASKS else self._long_polling.news
            with holding(request) as gave_way:
                reply = await unless_gone(lambda gone: hold(call, gone), request.receive)
            if reply is None and gave_way():
                return AwaitTasksReply(packages=[], retry_after_s=CROWDED_S)
            return reply
        reply = await self._perform(call)
        if isinstance(reply, StartTasksReply):
            self._long_polling.started(call, reply.package_id)
        return reply

    async def _perform(self, call: Call) -> Struct:
        try:
            reply = await self._long_polling.perform_in_steps(call)
        except Exception as error:
            self._audit.note(call, getattr(error, "code", "internal"))
            raise
        self._audit.note(call, "done", reply)
        return reply


def _refuse_unwritable(failures: FailureLog) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def refuse(request: Request, error: Exception) -> Response:
        if unwritable(error) is None:
            raise error  # uvicorn logs it
        return await refusal(request, failures.note(error, "a request failed") or error)

    return refuse


def _refuse_unknown(shares: FairShares) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def refuse(request: Request, error: Exception) -> Response:
        await shares.wait(STRANGERS)
        return await refusal(request, error)

    return refuse


async def _ignore(request: Request, error: Exception) -> Response:
    del request, error
    return Response(status_code=CLIENT_GONE)


def make_app(calls: Calls, proving: Proving, blobs: BlobRoutes, failures: FailureLog, shares: FairShares) -> Starlette:
    """Make the ASGI application of an embedded master.

    The routes wait for a turn before they raise a RequestError. A request for an unknown path or method reaches no
    route, so the handler of this error waits for a turn.
    """
    # When the handler of `Exception` has answered an error that has no other handler, Starlette raises the error again,
    # and uvicorn logs it.
    handlers: dict[Any, Any] = (
        {ClientDisconnect: _ignore}
        | dict.fromkeys((RequestError, Exception), refusal)
        | {HTTPException: _refuse_unknown(shares)}
        | dict.fromkeys((sqlite3.OperationalError, OSError), _refuse_unwritable(failures))
    )
    app = Starlette(
        routes=[
            Route(proofs.PATH, proving.serve, methods=["POST"]),
            Route("/v1/{name}", calls.serve, methods=["POST"]),
            Route("/blobs/{key:path}", blobs.serve, methods=["GET", "PUT"]),
        ],
        exception_handlers=handlers,
    )
    app.router.redirect_slashes = False
    return app
