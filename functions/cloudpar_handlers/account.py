"""This Lambda function serves operators. IAM decides who may invoke it; the function checks no token."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from cloudpar_master.adapters.aws.backend import from_environment
from cloudpar_master.services import audit, bodies
from cloudpar_master.services.access import Caller
from cloudpar_master.services.dispatcher import Call, Dispatcher
from cloudpar_protocol import codec
from cloudpar_protocol.errors import BadRequest

from .log_fields import note_call, note_error
from .request_log import Entry, RequestLog

WHO_CHARS = 300
"""At most this many characters of the caller's ARN are logged. The caller itself sends the ARN, since Lambda does not
say who invokes the function. If CloudTrail's data events are switched on, they record the true caller under the same
request id."""

JSON = {"accept": codec.JSON}

_deployment = from_environment(worker_token=False)
_dispatcher = Dispatcher(_deployment)
_log = RequestLog()


def handle(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Carry out an operator's call.

    The event is {"route": NAME, "who": the caller's ARN, "body": the message}; `who` and `body` may be missing. The
    answer is {"status": the HTTP status, "body": the reply, or the error}.
    """
    entry = _log.entry("request", context)
    try:
        name, who, body = _read(event)
        call = _dispatcher.enter(name, Caller("admin"), body, codec.JSON)
        entry.note(route=name)
        note_call(entry, call)
        answer = bodies.answer(JSON, _perform(call, who, entry))
    except Exception as error:  # noqa: BLE001 - every failure must reach the operator as an answer
        answer = bodies.refusal(JSON, note_error(entry, error))
    entry.note(status=answer.status)
    entry.close()
    return {"status": answer.status, "body": msgspec.json.decode(answer.body)}


def _read(event: Mapping[str, Any]) -> tuple[str, str, bytes]:
    """Read the route, the ARN of the caller, and the body.

    Raises:
        BadRequest: The event has a value that Python's JSON decoder accepts but a message cannot contain: half of a
            surrogate pair, or a number beyond 64 bits.
    """
    name, who = str(event.get("route", "")), str(event.get("who", ""))[:WHO_CHARS]
    try:
        msgspec.json.encode((name, who))
        return name, who, msgspec.json.encode(event.get("body") or {})
    except (UnicodeEncodeError, OverflowError) as error:
        raise BadRequest(f"the event has a value that no message can have: {error}") from None


def _perform(call: Call, who: str, entry: Entry) -> Struct:
    try:
        reply = _dispatcher.perform(call)
    except Exception as error:
        entry.note(audit=audit.facts(_deployment, call, who, getattr(error, "code", "internal")))
        raise
    entry.note(audit=audit.facts(_deployment, call, who, "done", reply))
    return reply
