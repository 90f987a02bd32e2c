"""The table of all calls. Servers, clients and the OpenAPI document are made from it."""

from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from . import account_messages as account
from . import client_messages as client
from . import fleet_messages as fleet
from . import worker_messages as worker

Role = Literal["user", "worker", "admin", "any"]
RequestT = TypeVar("RequestT", bound=Struct)
ReplyT = TypeVar("ReplyT", bound=Struct)


class Route(Struct, Generic[RequestT, ReplyT], frozen=True):
    """A call: POST /v1/<name> with a `request`. If the caller's token has this role, the master answers with a `reply`.

    The role "any" accepts every valid token. `list_packages` and `cancel_tasks` also accept the admin token.
    """

    name: str
    role: Role
    request: type[RequestT]
    reply: type[ReplyT]

    @property
    def path(self) -> str:
        """The path below the endpoint."""
        return f"/v1/{self.name}"


HELLO = Route("hello", "any", client.Hello, client.HelloReply)
PREPARE_UPLOADS = Route("prepare_uploads", "user", client.PrepareUploads, client.PrepareUploadsReply)
START_TASKS = Route("start_tasks", "user", client.StartTasks, client.StartTasksReply)
AWAIT_TASKS = Route("await_tasks", "user", client.AwaitTasks, client.AwaitTasksReply)
CANCEL_TASKS = Route("cancel_tasks", "user", client.CancelTasks, client.CancelTasksReply)
ACKNOWLEDGE = Route("acknowledge", "user", client.Acknowledge, client.AcknowledgeReply)
LIST_PACKAGES = Route("list_packages", "user", client.ListPackages, client.ListPackagesReply)
RETRIEVE_TASKS = Route("retrieve_tasks", "worker", worker.RetrieveTasks, worker.RetrieveTasksReply)
PREPARE_RESULTS = Route("prepare_results", "worker", worker.PrepareResults, worker.PrepareResultsReply)
PUBLISH_RESULTS = Route("publish_results", "worker", worker.PublishResults, worker.PublishResultsReply)
EXTEND_LEASES = Route("extend_leases", "worker", worker.ExtendLeases, worker.ExtendLeasesReply)
GIVE_BACK = Route("give_back", "worker", worker.GiveBack, worker.GiveBackReply)
CREATE_ACCOUNT = Route("create_account", "admin", account.CreateAccount, account.AccountReply)
LIST_ACCOUNTS = Route("list_accounts", "admin", account.ListAccounts, account.ListAccountsReply)
GRANT_QUOTA = Route("grant_quota", "admin", account.GrantQuota, account.AccountReply)
REVOKE_ACCOUNT = Route("revoke_account", "admin", account.RevokeAccount, account.AccountReply)
ROTATE_SEAL = Route("rotate_seal", "admin", account.RotateSeal, account.AccountReply)
SET_ROLE = Route("set_role", "admin", account.SetRole, account.AccountReply)
SET_NETWORK = Route("set_network", "admin", account.SetNetwork, account.AccountReply)
LIST_USAGE = Route("list_usage", "admin", account.ListUsage, account.ListUsageReply)
LIST_WORKERS = Route("list_workers", "admin", fleet.ListWorkers, fleet.ListWorkersReply)

ROUTES: tuple[Route[Any, Any], ...] = (
    HELLO, PREPARE_UPLOADS, START_TASKS, AWAIT_TASKS, CANCEL_TASKS, ACKNOWLEDGE, LIST_PACKAGES,
    RETRIEVE_TASKS, PREPARE_RESULTS, PUBLISH_RESULTS, EXTEND_LEASES, GIVE_BACK,
    CREATE_ACCOUNT, LIST_ACCOUNTS, GRANT_QUOTA, REVOKE_ACCOUNT, ROTATE_SEAL, SET_ROLE, SET_NETWORK,
    LIST_USAGE, LIST_WORKERS,
)  # fmt: skip
