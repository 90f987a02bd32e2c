"""A master with settings of its own that keeps a journal of its workers."""

import os
from collections.abc import Iterator
from pathlib import Path

from cloudpar._client.connection import Connection
from cloudpar._client.retry_policy import RetryPolicy
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import Account, ListAccounts
from support.master_process import TOKENS, Master
from support.waiting import HANG_S
from system import journal

TESTS = Path(__file__).parents[1]


class Site(Master):
    """A master process without workers: tests start these separately, and may kill them."""

    def __init__(
        self, folder: Path, module: str = "system.recording_master", more: dict[str, str] | None = None,
        **settings: float,
    ) -> None:  # fmt: skip
        folder.mkdir(exist_ok=True)
        self._journal = folder / "journal"
        python_path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
        super().__init__(
            folder / "data", stdin=True, settings=settings, module=module,
            environment={**os.environ, **(more or {}), "PYTHONPATH": python_path, journal.JOURNAL: str(self._journal)},
        )  # fmt: skip

    def journal(self) -> Iterator[journal.Entry]:
        """Return the journal of the workers' requests."""
        return journal.read(self._journal)

    def admin(self) -> list[str]:
        return ["--endpoint", self.endpoint, "--admin-token", TOKENS["admin_token"]]

    def accounts(self) -> list[Account]:
        connection = Connection(self.endpoint, TOKENS["admin_token"], RetryPolicy(HANG_S))
        try:
            return connection.call(routes.LIST_ACCOUNTS, ListAccounts()).accounts
        finally:
            connection.close()
