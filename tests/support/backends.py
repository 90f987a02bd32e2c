"""Masters for tests: a backend on given adapters, and calls that go over the wire."""

from typing import Any

from msgspec import Struct

from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import Clock, Ids, KeySafe
from cloudpar_master.services.backend import Backend, hash_token
from cloudpar_master.services.dispatcher import Dispatcher
from cloudpar_protocol import codec
from cloudpar_protocol.routes import ReplyT, RequestT, Route
from support.stores import Stores

WORKER_TOKEN, ADMIN_TOKEN = "worker", "admin"


def backend_on(
    stores: Stores, clock: Clock, policy: Policy, *, ids: Ids | None = None, safe: KeySafe | None = None
) -> Backend:
    """Make the backend of a master that runs on these adapters."""
    return Backend(
        packages=stores.packages,
        accounts=stores.accounts,
        queue=stores.queue,
        registry=stores.registry,
        blobs=stores.blobs,
        clock=clock,
        ids=ids or stores.ids,
        policy=policy,
        worker_token_hash=hash_token(WORKER_TOKEN),
        admin_token_hash=hash_token(ADMIN_TOKEN),
        safe=safe,
    )


def call(dispatcher: Dispatcher, token: str, route: Route[RequestT, ReplyT], request: Struct) -> ReplyT:
    """Send a request over the wire, and return the reply as it comes back."""
    admitted = dispatcher.admit(route.name, token, codec.encode(request), codec.MSGPACK)
    reply: Any = dispatcher.perform(admitted)
    return codec.decode(codec.encode(reply), route.reply)
