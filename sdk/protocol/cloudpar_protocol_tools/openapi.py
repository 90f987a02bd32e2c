"""Generates the OpenAPI 3.1 document from the table of routes and the messages.

    python -m cloudpar_protocol_tools.openapi > docs/openapi.json

A MessagePack body has the same structure as a JSON body, but contains plain bytes where JSON has base64 text.
"""

import inspect
import sys
from collections import defaultdict
from typing import Any

import msgspec

from cloudpar_protocol import codec
from cloudpar_protocol.errors import REQUEST_ERRORS
from cloudpar_protocol.routes import ROUTES, Role, Route
from cloudpar_protocol.version import __version__

_REFERENCE = "#/components/schemas/{name}"
_BEARERS: dict[Role, str] = {
    "user": "an account's token; an admin token is good for listing and cancelling",
    "worker": "the worker token",
    "admin": "the admin token",
    "any": "any token",
}


def document() -> dict[str, Any]:
    """Return the whole document as JSON values."""
    kinds = [codec.ErrorReply, *(kind for route in ROUTES for kind in (route.request, route.reply))]
    references, schemas = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
    for schema in schemas.values():
        if "description" in schema:
            schema["description"] = inspect.cleandoc(schema["description"])  # indented up to Python 3.12
    schema_of = dict(zip(kinds, references, strict=True))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Cloud Parallelizer",
            "version": __version__,
            "summary": "Start, run and await packages of tasks",
            "description": (inspect.getdoc(sys.modules[__name__]) or "").rpartition("\n\n")[2].replace("\n", " "),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [
            {
                "url": "{endpoint}",
                "description": "What `cloudpar up` prints, or the deployment's output.",
                "variables": {"endpoint": {"default": "http://127.0.0.1:8642"}},
            }
        ],
        "security": [{"bearer": []}],
        "paths": {route.path: {"post": _operation(route, schema_of)} for route in ROUTES},
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "responses": _error_responses(schema_of[codec.ErrorReply]),
            "schemas": dict(sorted(schemas.items())),
        },
    }


def render() -> str:
    """Return the document's text, as in docs/openapi.json."""
    return msgspec.json.format(msgspec.json.encode(document()), indent=2).decode() + "\n"


def _operation(route: Route[Any, Any], schema_of: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    service = route.request.__module__.rpartition(".")[2].removesuffix("_messages")
    summary = _summary(route.request)
    return {
        "operationId": route.name,
        "tags": [service],
        **({"summary": summary} if summary else {}),
        "description": f"Bearer: {_BEARERS[route.role]}.",
        "requestBody": {"required": True, "content": _content(schema_of[route.request])},
        "responses": {
            "200": {
                "description": _summary(route.reply) or f"The answer to {route.name}.",
                "content": _content(schema_of[route.reply]),
            },
            **{status: {"$ref": f"#/components/responses/{status}"} for status in _errors_by_status()},
        },
    }


def _summary(kind: type[msgspec.Struct]) -> str:
    """Return the first paragraph of a message's docstring; "" if it has no docstring."""
    return " ".join((inspect.cleandoc(kind.__doc__ or "")).partition("\n\n")[0].split())


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {media: {"schema": schema} for media in (codec.MSGPACK, codec.JSON)}


def _errors_by_status() -> dict[str, list[str]]:
    """Return the possible errors by status, with one line for each error code."""
    lines: dict[str, list[str]] = defaultdict(list)
    for code, kind in REQUEST_ERRORS.items():
        retry = " May be sent again." if kind.retryable else ""
        lines[str(kind.status)].append(f"`{code}`: {(inspect.getdoc(kind) or '').strip()}{retry}")
    return lines


def _error_responses(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        status: {"description": "\n\n".join(lines), "content": _content(schema)}
        for status, lines in _errors_by_status().items()
    }


if __name__ == "__main__":
    sys.stdout.write(render())
