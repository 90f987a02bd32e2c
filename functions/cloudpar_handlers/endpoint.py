"""Answers POST requests for /v1/{name}, which API Gateway passes on.

A public deployment has an HTTP API, whose events have payload format 2.0. A private one has a REST API, whose events
have format 1.0.
"""

import base64
import binascii
from collections.abc import Callable, Collection, Mapping
from typing import Any

from cloudpar_master.adapters.aws.backend import from_environment
from cloudpar_master.services import bodies
from cloudpar_master.services.dispatcher import Dispatcher
from cloudpar_protocol import codec
from cloudpar_protocol.errors import BadRequest, NotFound
from cloudpar_protocol.routes import Route

from .log_fields import note_call, note_error, note_reply
from .request_log import Entry, RequestLog

Handler = Callable[[Mapping[str, Any], Any], dict[str, Any]]


def handler(*served: Route[Any, Any]) -> Handler:
    """Make the handler of a Lambda function that serves these routes. Environment variables describe the master.

    Lambda gives a process a whole processor while it starts. Therefore this function already makes a link, which loads
    the client of S3, so that the first request need not load it.
    """
    backend = from_environment()
    backend.blobs.get_link("warm-up")
    return Endpoint(Dispatcher(backend), RequestLog(), served).serve


class Endpoint:
    """Serves the routes of one Lambda function."""

    def __init__(self, dispatcher: Dispatcher, log: RequestLog, served: Collection[Route[Any, Any]]) -> None:
        self._dispatcher = dispatcher
        self._log = log
        self._served = {route.name for route in served}

    def serve(self, event: Mapping[str, Any], context: Any) -> dict[str, Any]:
        """Answer a request. Each request gets an answer and one line in the log, also when the call fails."""
        entry = self._log.entry("request", context)
        # In format 1.0 the names of headers are as they were sent, and in format 2.0 they are in lower case.
        headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
        try:
            answer = self._answer(event, headers, entry)
        except Exception as error:  # noqa: BLE001 - the caller must get an answer, to know that it may retry
            answer = bodies.refusal(headers, note_error(entry, error))
        entry.note(status=answer.status)
        entry.close()
        return _rendered(answer)

    def _answer(self, event: Mapping[str, Any], headers: Mapping[str, str], entry: Entry) -> bodies.Answer:
        path = str(event.get("rawPath") or event.get("path") or "")  # format 2.0, or 1.0
        name = path.rpartition("/")[2]
        entry.note(route=name if name in self._served else "unknown")
        if name not in self._served:
            raise NotFound(f"no route {path}: this function serves {', '.join(sorted(self._served))}")
        body = _body(event)
        call = self._dispatcher.admit(name, bodies.bearer(headers), body, bodies.sent_media(headers))
        note_call(entry, call)
        reply = self._dispatcher.perform(call)
        note_reply(entry, call, reply)
        return bodies.answer(headers, reply)


def _body(event: Mapping[str, Any]) -> bytes:
    text: str = event.get("body") or ""
    bodies.check_size(len(text) * 3 // 4 - 2 if event.get("isBase64Encoded") else len(text))
    if not event.get("isBase64Encoded"):
        body = text.encode()
    else:
        try:
            body = base64.b64decode(text, validate=True)
        except binascii.Error:
            raise BadRequest("the body arrived damaged: send it again") from None
    bodies.check_size(len(body))
    return body


def _rendered(answer: bodies.Answer) -> dict[str, Any]:
    binary = answer.media != codec.JSON
    return {
        "statusCode": answer.status,
        "headers": {"content-type": answer.media, **answer.headers},
        "body": base64.b64encode(answer.body).decode() if binary else answer.body.decode(),
        "isBase64Encoded": binary,
    }
