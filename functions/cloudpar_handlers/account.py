"""The operator's function: invoked directly, by whom IAM lets; it is on no API and knows no token."""

from collections.abc import Mapping
from typing import Any

import msgspec

from cloudpar_master.adapters.aws.deployment import from_environment
from cloudpar_master.services import bodies
from cloudpar_master.services.access import Caller
from cloudpar_master.services.reception import Reception
from cloudpar_protocol import codec

from .facts import note_call, note_error
from .journal import Journal

JSON = {"accept": codec.JSON}

_reception = Reception(from_environment(worker_token=False))
_journal = Journal()


def handle(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """{"route": "create_account", "body": {the message}} -> {"status": 200, "body": {the reply, or the error}}."""
    entry = _journal.entry("request", context)
    try:
        name, body = str(event.get("route", "")), msgspec.json.encode(event.get("body") or {})
        call = _reception.enter(name, Caller("admin"), body, codec.JSON)
        entry.note(route=name)
        note_call(entry, call)
        answer = bodies.answer(JSON, _reception.perform(call))
    except Exception as error:  # noqa: BLE001  the operator has to be told
        answer = bodies.refusal(JSON, note_error(entry, error))
    entry.note(status=answer.status)
    entry.close()
    return {"status": answer.status, "body": msgspec.json.decode(answer.body)}
