import logging
import re
from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple, Protocol, TypedDict, Unpack

from botocore.exceptions import BotoCoreError, ClientError

from cloudpar_master.core.recent import Recent
from cloudpar_master.ports import AccountRecord, Clock, TaskRoles
from cloudpar_protocol.worker_messages import TaskCredentials

from . import errors
from .account_store import DynamoAccountStore

SESSION_S: Final = 3600
"""How long credentials are valid, in seconds. AWS permits no longer time if a role (here that of the Lambda function)
assumes another role."""

LEAST_S: Final = 900.0
"""Credentials that are valid for less than this time, in seconds, are not given out. AWS's libraries renew credentials
when they are valid for less than 10 to 15 minutes."""

REFUSED_S: Final = 60.0
"""If AWS refuses a session of a role, this process does not request one again for this many seconds. Otherwise each
lease of the account would cost a request."""

KNOWN: Final = 1_000
"""For how many packages a process remembers credentials."""

REFUSED: Final = (
    "tasks of account %s get no AWS credentials, because AWS does not let this function assume %s: %s; `cloudpar "
    "account set-role` shows the trust policy that the role needs"
)

log = logging.getLogger("cloudpar_master")


class _AssumeRole(TypedDict):
    RoleArn: str
    RoleSessionName: str
    ExternalId: str
    DurationSeconds: int


class _Credentials(TypedDict):
    AccessKeyId: str
    SecretAccessKey: str
    SessionToken: str
    Expiration: datetime


class _Session(TypedDict):
    Credentials: _Credentials


class StsClient(Protocol):
    """The method of the STS client that this module calls."""

    def assume_role(self, **request: Unpack[_AssumeRole]) -> _Session:
        """Open a session of a role."""


class _Known(NamedTuple):
    """Credentials of a role, or None after a refusal, and the time until which this answer is used again."""

    credentials: TaskCredentials | None
    until: float


class StsTaskRoles(TaskRoles):
    """Stores the roles in the account table, and opens sessions of these roles by STS.

    Args:
        accounts: The account table.
        client: Returns the client for STS. It is made at its first use, because most processes never need it.
        clock: Tells the time, from which this object computes how long credentials are still valid.
        region: The region of the deployment.
    """

    def __init__(
        self, accounts: DynamoAccountStore, client: Callable[[], StsClient], clock: Clock, region: str
    ) -> None:
        self._accounts = accounts
        self._client = client
        self._clock = clock
        self._region = region
        self._known = Recent[tuple[str, str, str], _Known](KNOWN)

    def assign(self, account_id: str, task_role: str | None) -> AccountRecord | None:
        return self._accounts.keep_task_role(account_id, task_role)

    def credentials(self, account_id: str, package_id: str) -> TaskCredentials | None:
        task_role = self._accounts.task_role(account_id)
        if task_role is None:
            return None
        # The role is part of the key: after a change of the role, credentials of the earlier one are not given out.
        key = task_role, account_id, package_id
        known = self._known.get(key)
        if known is None or known.until <= self._clock.now():
            known = self._known[key] = self._opened(*key)
        return known.credentials

    def _opened(self, task_role: str, account_id: str, package_id: str) -> _Known:
        try:
            session = self._client().assume_role(
                RoleArn=task_role,
                RoleSessionName=session_name(package_id),
                # The role's trust policy permits this call only with this account's id. Without the id, an operator who
                # confuses the roles of two accounts would let each account read the other's data.
                ExternalId=account_id,
                DurationSeconds=SESSION_S,
            )
        except (ClientError, BotoCoreError) as error:
            if errors.is_passing(error):
                raise errors.busy("AWS's token service") from None
            log.error(REFUSED, account_id, task_role, error)  # noqa: TRY400 - AWS's text says it all
            return _Known(None, self._clock.now() + REFUSED_S)
        found = session["Credentials"]
        expires_at = found["Expiration"].timestamp()
        credentials = TaskCredentials(
            package_id=package_id,
            access_key_id=found["AccessKeyId"],
            secret_access_key=found["SecretAccessKey"],
            session_token=found["SessionToken"],
            expires_at=expires_at,
            region=self._region,
        )
        return _Known(credentials, expires_at - LEAST_S)


def session_name(package_id: str) -> str:
    """Return the name of the session for a package. CloudTrail shows it with each request of the package's tasks.

    >>> session_name("s9f2c/1")
    'cloudpar-s9f2c-1'
    """
    return re.sub(r"[^\w+=,.@-]", "-", f"cloudpar-{package_id}", flags=re.ASCII)[:64]
