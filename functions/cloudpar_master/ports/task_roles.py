from typing import Protocol

from cloudpar_protocol.worker_messages import TaskCredentials

from .account_store import AccountRecord


class TaskRoles(Protocol):
    """The IAM roles of accounts, and their credentials for tasks."""

    def assign(self, account_id: str, task_role: str | None) -> AccountRecord | None:
        """Let the account's tasks use a role, or (None) no role. Returns the account; None if it does not exist.

        Other processes may use the earlier role for some seconds.
        """

    def credentials(self, account_id: str, package_id: str) -> TaskCredentials | None:
        """Return credentials of the account's role for the tasks of one package, valid for at least 15 minutes.

        None if the account has no role, or if AWS does not let this master assume it. The log then says why.

        Raises:
            Unavailable: AWS does not answer now. Repeat the call.
        """
