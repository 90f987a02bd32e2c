"""Tells the master which packages the client no longer needs."""

import threading
from typing import TYPE_CHECKING

from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Acknowledge
from cloudpar_protocol.limits import BULK_ITEMS

from .connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable


class Acknowledgements:
    """The packages that the client no longer needs, until the master knows this. Any thread may use this object.

    When the master gets the acknowledgement of a package, it cancels the unfinished tasks and frees the storage.

    Attributes:
        on_added: Is called after each `add`.
    """

    def __init__(self, connection: Connection) -> None:
        self.on_added: Callable[[], None] = lambda: None
        self._connection = connection
        self._lock = threading.Lock()
        self._package_ids: list[str] = []

    def __len__(self) -> int:
        return len(self._package_ids)

    def add(self, package_id: str) -> None:
        """Record that the client no longer needs a package; `send` tells the master."""
        with self._lock:
            self._package_ids.append(package_id)
        self.on_added()

    def send(self) -> None:
        """Acknowledge the recorded packages. If a request fails, forget its packages and those of later requests.

        Raises:
            CloudparError: The master refuses or does not answer.
            Stopped: The session is closed.
        """
        with self._lock:
            package_ids, self._package_ids = self._package_ids, []
        for first in range(0, len(package_ids), BULK_ITEMS):
            message = Acknowledge(package_ids=package_ids[first : first + BULK_ITEMS])
            self._connection.call(routes.ACKNOWLEDGE, message)
