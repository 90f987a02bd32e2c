"""The AWS credentials that the master has sent for tasks."""

import threading
import time
from collections.abc import Collection, Iterable
from typing import Final

from cloudpar_protocol.worker_messages import TaskCredentials

RENEWED_S: Final = 840.0
"""The worker requests new credentials when its credentials are valid for less than this time, in seconds. The master
gives out only credentials that are valid for at least 15 minutes more, so the worker then gets new ones. AWS's
libraries wait for new credentials when those that they have are valid for less than 10 minutes.
"""


class CredentialStore:
    """The newest credentials for each package of which this worker has a lease. All threads of the agent may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, TaskCredentials] = {}

    def take(self, credentials: Iterable[TaskCredentials | None]) -> None:
        """Record credentials, unless later ones for the same package are known."""
        with self._lock:
            for each in credentials:
                if each is not None:
                    known = self._known.get(each.package_id)
                    if known is None or known.expires_at < each.expires_at:
                        self._known[each.package_id] = each

    def of(self, package_id: str) -> TaskCredentials | None:
        """Return the credentials for a package; None if the master has sent none."""
        return self._known.get(package_id)

    def expire_soon(self, package_ids: Collection[str]) -> bool:
        """Whether the credentials for at least one of these packages must be renewed."""
        # Use the wall clock, even if it may jump: AWS's libraries in the tasks decide by the same clock.
        until = time.time() + RENEWED_S
        with self._lock:
            return any(each.expires_at < until for name, each in self._known.items() if name in package_ids)

    def keep(self, package_ids: Collection[str]) -> None:
        """Forget the credentials for all other packages."""
        with self._lock:
            self._known = {name: each for name, each in self._known.items() if name in package_ids}
