"""The embedded master's application and its calls: each parses a request, calls a service and renders the reply."""

import sqlite3
from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

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

CALLS: Final = "/v1/"
BLOBS: Final = "/blobs/"
BLOB_METHODS: Final = ["GET", "HEAD", "PUT"]


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

    async def serve(self, name: str, request: Request) -> Response:
        """Carry out the call of this name.

        A retrieval or an await with a `hold_s` above 0 is held open until there is something to answer, but not for
        longer than `hold_s`. `App` answers the errors that this method raises.
        """
        caller = None
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


class _Request(Request):
    """A request whose headers are a dictionary with names in lower case. Starlette searches a list at each access."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        super().__init__(scope, receive)
        # If a name comes several times, the first value counts, as in Starlette.
        fields = reversed(scope["headers"])
        self._by_name = {name.decode("latin-1"): value.decode("latin-1") for name, value in fields}

    @property
    def headers(self) -> Mapping[str, str]:  # type: ignore[override]  # a mapping is all that this package uses
        """The headers, by name in lower case."""
        return self._by_name


class App:
    """The ASGI application of an embedded master.

    Its three routes need none of Starlette's routing, which would take a fifth of the time of a small request.
    """

    def __init__(
        self, calls: Calls, proving: Proving, blobs: BlobRoutes, failures: FailureLog, shares: FairShares
    ) -> None:
        self._calls = calls
        self._proving = proving
        self._blobs = blobs
        self._failures = failures
        self._shares = shares

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. If an error is not expected, raise it again after the answer, so that uvicorn logs it."""
        response, unexpected = await self.response(_Request(scope, receive))
        await response(scope, receive, send)
        if unexpected is not None:
            raise unexpected

    async def response(self, request: Request) -> tuple[Response, Exception | None]:
        """Return the response to a request, and the error that it reports if this error is not expected."""
        try:
            return await self._route(request), None
        except Exception as error:  # noqa: BLE001 - the caller raises or logs an error that is not expected
            response, expected = await self._refusal(request, error)
            return response, None if expected else error

    async def _route(self, request: Request) -> Response:
        path, method = request.scope["path"], request.method
        call = path.removeprefix(CALLS)
        if path.startswith(BLOBS):
            if method in BLOB_METHODS:
                return await self._blobs.serve(path.removeprefix(BLOBS), request)
            raise HTTPException(405, headers={"Allow": ", ".join(BLOB_METHODS)})
        if call in {"", path} or "/" in call:
            raise HTTPException(404)
        if method != "POST":
            raise HTTPException(405, headers={"Allow": "POST"})
        return await (self._proving.serve(request) if path == proofs.PATH else self._calls.serve(call, request))

    async def _refusal(self, request: Request, error: Exception) -> tuple[Response, bool]:
        """Render an error as the answer to a request. Returns also whether the error is expected.

        The routes wait for a turn before they raise a RequestError. A request for an unknown path or method reaches no
        route, so it waits here.
        """
        if isinstance(error, ClientDisconnect):
            return Response(status_code=CLIENT_GONE), True
        if isinstance(error, HTTPException):
            await self._shares.wait(STRANGERS)
        if isinstance(error, RequestError | HTTPException):
            return refusal(request, error), True
        if isinstance(error, sqlite3.OperationalError | OSError) and unwritable(error) is not None:
            return refusal(request, self._failures.note(error, "a request failed") or error), True
        return refusal(request, error), False
