"""Sends a client's requests, and records each one with its answer. It knows of the protocol only what the page says."""

import base64
import http.client
import json
import time
from pathlib import Path
from random import Random
from threading import Event
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from histories.history import SUCCESS, Answered, Begun, Recorder

JSON, MSGPACK = "application/json", "application/msgpack"
PATIENCE_S: Final = 90.0
"""For how long a request is repeated: longer than any fault lasts."""
UNDECIDED: Final = {None, 429, 500, 503}
"""Answers after which a client repeats its request."""


class Wire:
    """One connection of a client, on which it makes one call after the other.

    Args:
        endpoint: Where the client reaches the master.
        account: The name of the client's account, for the record.
        token: The account's token.
        record: The file for the events.
        mime: The format of requests and answers. The record is the same in both.
    """

    def __init__(self, endpoint: str, account: str, token: str, record: Path, mime: str = JSON) -> None:
        self.account = account
        self._name, self._recorder = record.stem, Recorder(record)
        self._address = urlsplit(endpoint).netloc
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": mime}
        self._codec: Any = msgspec.json if mime == JSON else msgspec.msgpack
        self._line: http.client.HTTPConnection | None = None
        self._number = 0
        self._random = Random(self._name)

    def once(self, route: str, request: dict[str, Any]) -> tuple[int | None, Any]:
        """Send a request. Returns the status and the answer, or None if the answer was lost."""
        self._number += 1
        self._recorder.add(Begun(self._name, self._number, time.monotonic_ns(), self.account, route, request))
        try:
            status, reply = self._exchange(route, request)
        except (OSError, http.client.HTTPException, msgspec.DecodeError):
            self.close()
            return None, None
        self._recorder.add(Answered(self._name, self._number, time.monotonic_ns(), status, reply))
        return status, reply

    def _exchange(self, route: str, request: dict[str, Any]) -> tuple[int, Any]:
        if self._line is None:
            self._line = http.client.HTTPConnection(self._address, timeout=PATIENCE_S)
        self._line.request("POST", f"/v1/{route}", self._codec.encode(request), self._headers)
        answer = self._line.getresponse()
        if answer.headers["Content-Length"] is None:
            raise http.client.HTTPException("the head of the answer was cut")
        return answer.status, json.loads(msgspec.json.encode(self._codec.decode(answer.read())))

    def call(self, route: str, request: dict[str, Any]) -> tuple[int | None, Any]:
        """Repeat a request until it is answered for good, as every client does."""
        deadline, delay_s = time.monotonic() + PATIENCE_S, 0.01
        status, reply = self.once(route, request)
        while status in UNDECIDED and time.monotonic() < deadline:
            Event().wait(delay_s * self._random.random())
            delay_s = min(2 * delay_s, 0.5)
            status, reply = self.once(route, request)
        return status, reply

    def get(self, route: str, request: dict[str, Any]) -> Any:
        """Make a call that succeeds."""
        status, reply = self.call(route, request)
        assert status == SUCCESS, (route, status, reply)
        return reply

    def end(self) -> None:
        """Close the connection and the record."""
        self.close()
        self._recorder.close()

    def close(self) -> None:
        """Close the connection. The next call opens another one."""
        if self._line is not None:
            self._line.close()
        self._line = None


def packed(value: Any) -> str:
    """Return a value as a result contains it in JSON."""
    return base64.b64encode(msgspec.msgpack.encode(value)).decode()
