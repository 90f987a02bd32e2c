from typing import Any


class AnswerWriter:
    """The transport of one answer. It sends the head of the answer together with the first part of the body.

    uvicorn writes the head before the body. If both were sent separately, the kernel would wake the client twice for
    each answer.
    """

    def __init__(self, cycle: Any) -> None:
        self._cycle = cycle
        self._transport = cycle.transport
        self._head: bytes | None = None

    def write(self, data: bytes) -> None:
        """Keep the head of the answer until the next call. Send other data at once, behind the head if one is kept."""
        # Do not keep the head of an answer to HEAD: uvicorn writes no body after it. Do not keep a "100 Continue"
        # either: uvicorn writes it before the answer starts.
        if self._head is None and self._cycle.response_started and self._cycle.scope["method"] != "HEAD":
            self._head = data
            return
        if self._head:
            data, self._head = self._head + data, b""
        self._transport.write(data)

    def close(self) -> None:
        """Send the head if no body has followed it, and close the connection."""
        if self._head and not self._transport.is_closing():
            self._transport.write(self._head)
        self._transport.close()

    def is_closing(self) -> bool:
        """Return whether the connection is being closed."""
        return bool(self._transport.is_closing())
