"""Uploads payloads in parts, by several threads. The functions of the caller repeat failed requests."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from cloudpar_protocol.parts import bounds, completion
from cloudpar_protocol.payloads import Link, Parts

THREADS = 4
"""How many parts of one upload are sent at the same time."""


@dataclass
class PartedUpload:
    """The upload of one payload in parts.

    A link may expire while parts are uploaded by other links. So when the store refuses a link, this class renews all
    links. It does not send again the parts that are already uploaded. If a link is refused and no part was uploaded
    since the links were renewed, the upload fails.

    Attributes:
        put: Uploads a part by a link, and returns its ETag.
        complete: Combines the uploaded parts into one payload. Gets a link and the list of the parts.
        size: The size of the payload, in bytes.
        read: Returns bytes [start, end) of the payload. Several threads call it.
        crc32s: The CRC-32 of each part.
        renew: Returns new links to the parts of an upload, given its id; None if there are no new links, for example
            because the payload is in the blob store already. The upload then fails.
        is_refusal: Whether an error of `put` or `complete` means that a link was refused.
    """

    put: Callable[[Link, Sequence[memoryview]], str]
    complete: Callable[[Link, bytes], None]
    size: int
    read: Callable[[int, int], memoryview]
    crc32s: Sequence[int]
    renew: Callable[[str], Parts | None]
    is_refusal: Callable[[Exception], bool]
    _etags: dict[int, str] = field(default_factory=dict, init=False)

    def run(self, parts: Parts) -> None:
        """Upload the payload by these links.

        Raises:
            Exception: `read`, `put`, `complete` or `renew` raised this error, and new links did not help.
        """
        there_before = -1
        while True:
            try:
                self._send_missing(parts.links)
                self.complete(parts.complete, self._list())
            except Exception as error:
                renewed = None
                if self.is_refusal(error) and len(self._etags) > there_before:
                    renewed = self.renew(parts.upload_id)
                if renewed is None:
                    raise
                parts, there_before = renewed, len(self._etags)
            else:
                return

    def _send_missing(self, links: Sequence[Link]) -> None:
        missing = deque(number for number in range(len(bounds(self.size))) if number not in self._etags)
        errors: list[BaseException] = []
        threads = [
            threading.Thread(target=self._send_each, args=(links, missing, errors), name="cloudpar-upload", daemon=True)
            for _ in range(min(THREADS, len(missing)) - 1)
        ]
        for thread in threads:
            with suppress(RuntimeError):  # the interpreter is shutting down and starts no more threads
                thread.start()
        self._send_each(links, missing, errors)
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        if errors:
            raise min(errors, key=lambda error: isinstance(error, Exception) and self.is_refusal(error))

    def _send_each(self, links: Sequence[Link], missing: deque[int], errors: list[BaseException]) -> None:
        with suppress(IndexError):
            while not errors:
                number = missing.popleft()
                try:
                    part = self.read(*bounds(self.size)[number])
                    self._etags[number] = self.put(links[number], [part])
                except Exception as error:  # noqa: BLE001 - raised again by the thread that waits for all parts
                    errors.append(error)
                except BaseException as error:
                    errors.append(error)
                    raise

    def _list(self) -> bytes:
        return completion([etag for _, etag in sorted(self._etags.items())], self.crc32s)
