"""Leases carry the credentials of their account's IAM role."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.access import Caller
from cloudpar_master.services.audit import facts
from cloudpar_protocol import codec, routes
from cloudpar_protocol.account_messages import AccountReply, SetRole
from cloudpar_protocol.errors import BadRequest, NotFound, Unavailable
from cloudpar_protocol.worker_messages import ExtendLeases, Lease, LeaseRef, RetrieveTasks, TaskCredentials
from support.clock import NOW
from support.world import World

ROLE = "arn:aws:iam::123456789012:role/cloudpar/ann"


class Roles:
    """Roles in memory, whose sessions have numbers."""

    def __init__(self, accounts: Any) -> None:
        self._accounts = accounts
        self.roles: dict[str, str | None] = {}
        self.busy = False
        self.sessions = 0

    def assign(self, account_id: str, task_role: str | None) -> AccountRecord | None:
        account: AccountRecord | None = self._accounts.get(account_id)
        if account is not None:
            self.roles[account_id] = task_role
            account = account._replace(task_role=task_role)
        return account

    def credentials(self, account_id: str, package_id: str) -> TaskCredentials | None:
        if self.busy:
            raise Unavailable("AWS's token service is very busy: try again")
        if self.roles.get(account_id) is None:
            return None
        self.sessions += 1
        return TaskCredentials(
            package_id=package_id, access_key_id="ASIA", secret_access_key="secret", session_token=str(self.sessions),
            expires_at=NOW,
        )  # fmt: skip


@pytest.fixture
def roles(world: World) -> Roles:
    """Give the master roles."""
    roles = Roles(world.backend.accounts)
    world.__init__(world.backend._replace(roles=roles), world.clock)  # type: ignore[misc]
    return roles


def retrieved(world: World, *, credentials: bool = True, chunks: int = 100) -> Sequence[Lease]:
    request = RetrieveTasks(
        attempt_id=f"attempt {next(world.numbers)}", worker_id="w", executors=2, chunks=chunks,
        credentials=credentials,
    )  # fmt: skip
    return world.worker.retrieve_tasks(request).leases


def set_role(world: World, account_id: str, task_role: str | None) -> AccountRecord:
    body = codec.encode(SetRole(account_id=account_id, task_role=task_role))
    reply = world.dispatcher.perform(world.dispatcher.enter("set_role", Caller("admin"), body, codec.MSGPACK))
    assert isinstance(reply, AccountReply)
    assert reply.account.task_role == task_role
    return world.record(account_id)


def test_a_lease_has_credentials_for_its_package(world: World, roles: Roles, ann: AccountRecord) -> None:
    set_role(world, ann.account_id, ROLE)
    package_id = world.start(ann)
    found = [lease.credentials for lease in retrieved(world)]
    assert found
    assert {each.package_id for each in found if each is not None} == {package_id}
    assert None not in found


def test_a_lease_of_an_account_without_a_role_has_no_credentials(
    world: World, roles: Roles, ann: AccountRecord, bob: AccountRecord
) -> None:
    set_role(world, ann.account_id, ROLE)
    world.start(bob)
    assert [lease.credentials for lease in retrieved(world, chunks=1)] == [None]
    set_role(world, ann.account_id, None)
    world.start(ann)
    assert {lease.credentials for lease in retrieved(world)} == {None}


def test_a_worker_that_cannot_keep_credentials_apart_gets_none(world: World, roles: Roles, ann: AccountRecord) -> None:
    set_role(world, ann.account_id, ROLE)
    world.start(ann)
    assert {lease.credentials for lease in retrieved(world, credentials=False)} == {None}
    assert roles.sessions == 0


def test_chunks_wait_while_no_credentials_can_be_had(world: World, roles: Roles, ann: AccountRecord) -> None:
    """A task that needs them would fail. A retrieval that finds nothing else is refused, and repeated."""
    set_role(world, ann.account_id, ROLE)
    world.start(ann)
    roles.busy = True
    with pytest.raises(Unavailable, match="token service"):
        retrieved(world)
    roles.busy = False
    assert retrieved(world)


def renewed(world: World, leases: Sequence[Lease], *, credentials: bool = True) -> list[TaskCredentials]:
    refs = [LeaseRef(**lease.identity()) for lease in leases]
    reply = world.worker.extend_leases(ExtendLeases(worker_id="w", leases=refs, credentials=credentials))
    assert len(reply.leases) == len(leases)
    return reply.credentials


def test_a_beat_that_requests_credentials_gets_them_once_for_each_package(
    world: World, roles: Roles, ann: AccountRecord
) -> None:
    set_role(world, ann.account_id, ROLE)
    packages = {world.start(ann), world.start(ann)}
    leases = [*retrieved(world), *retrieved(world)]
    assert len(leases) > len(packages)
    assert renewed(world, leases, credentials=False) == []
    found = renewed(world, leases)
    assert sorted(each.package_id for each in found) == sorted(packages)
    roles.busy = True
    assert renewed(world, leases) == []


def test_a_beat_gets_credentials_although_another_package_cannot_be_read(
    world: World, roles: Roles, ann: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_role(world, ann.account_id, ROLE)
    packages = [world.start(ann), world.start(ann)]
    leases = [*retrieved(world), *retrieved(world)]
    load = world.backend.packages.load

    def fails_for_the_first(package_id: str) -> Any:
        if package_id == packages[0]:
            raise Unavailable("the table is busy")
        return load(package_id)

    monkeypatch.setattr(world.backend.packages, "load", fails_for_the_first)
    refs = [LeaseRef(**lease.identity()) for lease in leases]
    reply = world.worker.extend_leases(ExtendLeases(worker_id="w", leases=refs, credentials=True))
    assert [each.package_id for each in reply.credentials] == [packages[1]]
    assert 0 < len(reply.leases) < len(leases)


def test_a_beat_gets_no_credentials_for_a_package_that_has_ended(
    world: World, roles: Roles, ann: AccountRecord
) -> None:
    """Otherwise a worker token and the id of an ended package would be enough."""
    set_role(world, ann.account_id, ROLE)
    package_id = world.start(ann)
    leases = retrieved(world)
    unknown = replace(leases[0], package_id="unknown")
    assert renewed(world, [unknown]) == []
    world.cancel(ann, package_id)
    assert renewed(world, leases) == []


def test_a_local_master_refuses_roles_with_the_reason(world: World, ann: AccountRecord) -> None:
    with pytest.raises(BadRequest, match="no deployment on AWS"):
        set_role(world, ann.account_id, ROLE)
    world.start(ann)
    assert {lease.credentials for lease in retrieved(world)} == {None}


def test_a_role_needs_an_account(world: World, roles: Roles) -> None:
    with pytest.raises(NotFound, match="cloudpar account list"):
        set_role(world, "unknown", ROLE)


@pytest.mark.parametrize(
    "role",
    [
        "arn:aws:iam::123456789012:role/admin", "arn:aws:iam::123456789012:role/cloudpar/", "ann",
        "arn:aws:iam::123456789012:user/cloudpar/ann", "arn:aws:iam::123456789012:role/x/cloudpar/ann", f"{ROLE}\n",
    ],
)  # fmt: skip
def test_a_role_of_another_path_is_refused(world: World, roles: Roles, role: str) -> None:
    """The deployment may assume none of them: some roles trust their whole AWS account."""
    with pytest.raises(BadRequest, match="task_role"):
        set_role(world, "a", role)


def test_the_audit_names_the_role(world: World, roles: Roles, ann: AccountRecord) -> None:
    request = SetRole(account_id=ann.account_id, task_role=ROLE)
    call = world.dispatcher.enter("set_role", Caller("admin"), codec.encode(request), codec.MSGPACK)
    assert call.route is routes.SET_ROLE
    assert facts(world.backend, call, "operator", "done") == {
        "who": "operator", "action": "set_role", "outcome": "done", "account_id": ann.account_id, "task_role": ROLE,
    }  # fmt: skip
