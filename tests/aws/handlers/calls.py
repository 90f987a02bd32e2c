"""Calls a function with the events that API Gateway sends, and reads its answers."""

import base64
from types import ModuleType
from typing import Any, TypeVar

from msgspec import Struct

from cloudpar_protocol import codec
from cloudpar_protocol.routes import Route

from .conftest import USER_TOKEN, Context

RequestT = TypeVar("RequestT", bound=Struct)
ReplyT = TypeVar("ReplyT", bound=Struct)


def event(path: str, body: bytes, token: str = USER_TOKEN, *, media: str = codec.MSGPACK, **headers: str) -> Any:
    """Return an event of payload format 2.0, with the fields that the functions read."""
    binary = media != codec.JSON
    return {
        "version": "2.0",
        "rawPath": path,
        "headers": {"content-type": media, "authorization": f"Bearer {token}", **headers},
        "body": base64.b64encode(body).decode() if binary else body.decode(),
        "isBase64Encoded": binary,
    }


def body_of(answer: Any) -> bytes:
    text: str = answer["body"]
    return base64.b64decode(text) if answer["isBase64Encoded"] else text.encode()


def ask(function: ModuleType, route: Route[RequestT, ReplyT], message: RequestT, token: str = USER_TOKEN) -> ReplyT:
    """Call a route and return its reply."""
    answer = function.handle(event(route.path, codec.encode(message), token), Context())
    if answer["statusCode"] != 200:
        raise codec.decode_error(body_of(answer), answer["statusCode"])
    return codec.decode(body_of(answer), route.reply)
