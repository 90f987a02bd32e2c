"""StsTaskRoles: accounts' IAM roles, and their sessions."""

import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from cloudpar_master.adapters.aws.account_store import MEMORY_S, DynamoAccountStore
from cloudpar_master.adapters.aws.task_roles import LEAST_S, REFUSED_S, SESSION_S, StsTaskRoles, session_name
from cloudpar_protocol.errors import Unavailable
from master.conformance.test_accounts import make_account
from support.clock import SetClock
from support.stores import Stores

from .stubs import Stubber, offline, stubbed

ROLE = "arn:aws:iam::123456789012:role/cloudpar/ann"
OTHER = "arn:aws:iam::123456789012:role/cloudpar/other"


@pytest.fixture
def sts() -> Iterator[Stubber]:
    with stubbed(offline().sts) as stub:
        yield stub


@pytest.fixture
def open_roles(stores: Stores, clock: SetClock, sts: Stubber) -> Callable[[], StsTaskRoles]:
    """Open the roles of another process."""
    assert isinstance(stores.accounts, DynamoAccountStore)
    table = stores.accounts._table
    stores.accounts.create(make_account("ann"))
    return lambda: StsTaskRoles(DynamoAccountStore(table, clock), lambda: offline().sts, clock, "eu-central-1")


@pytest.fixture
def roles(open_roles: Callable[[], StsTaskRoles]) -> StsTaskRoles:
    return open_roles()


def session(sts: Stubber, at: float, role: str = ROLE, name: str = "cloudpar-p", key: str = "ASIAEXAMPLE00000") -> None:
    """Script the answer to a request for a session that starts at this time."""
    expires = datetime.fromtimestamp(at + SESSION_S, UTC)
    found = {"AccessKeyId": key, "SecretAccessKey": "secret", "SessionToken": "token", "Expiration": expires}
    wanted = {"RoleArn": role, "RoleSessionName": name, "ExternalId": "ann", "DurationSeconds": SESSION_S}
    sts.add_response("assume_role", {"Credentials": found}, wanted)


def test_an_account_without_a_role_needs_no_session(roles: StsTaskRoles) -> None:
    assert roles.credentials("ann", "p") is None
    assert roles.credentials("unknown", "p") is None


def test_a_role_is_kept_with_its_account(roles: StsTaskRoles, open_roles: Any, stores: Stores) -> None:
    assigned = roles.assign("ann", ROLE)
    assert assigned is not None
    assert assigned.task_role == ROLE
    assert [each.task_role for each in stores.accounts.list()] == [ROLE]
    assert open_roles().assign("ann", None) == make_account("ann")
    assert roles.assign("unknown", ROLE) is None


def test_credentials_are_those_of_a_session_of_the_package(roles: StsTaskRoles, sts: Stubber, clock: SetClock) -> None:
    roles.assign("ann", ROLE)
    session(sts, clock.now())
    found = roles.credentials("ann", "p")
    assert found is not None
    assert (found.package_id, found.access_key_id, found.secret_access_key, found.session_token) == (
        "p", "ASIAEXAMPLE00000", "secret", "token",
    )  # fmt: skip
    assert (found.expires_at, found.region) == (clock.now() + SESSION_S, "eu-central-1")


def test_a_session_serves_all_leases_until_it_is_too_short(roles: StsTaskRoles, sts: Stubber, clock: SetClock) -> None:
    roles.assign("ann", ROLE)
    session(sts, clock.now())
    first = roles.credentials("ann", "p")
    clock.move(SESSION_S - LEAST_S - 1)
    assert roles.credentials("ann", "p") == first
    clock.move(1)
    session(sts, clock.now(), key="ASIAEXAMPLE00001")
    later = roles.credentials("ann", "p")
    assert later is not None
    assert later.access_key_id == "ASIAEXAMPLE00001"


def test_another_package_and_another_role_have_sessions_of_their_own(
    roles: StsTaskRoles, sts: Stubber, clock: SetClock
) -> None:
    roles.assign("ann", ROLE)
    session(sts, clock.now())
    session(sts, clock.now(), name="cloudpar-q")
    session(sts, clock.now(), role=OTHER)
    assert roles.credentials("ann", "p")
    assert roles.credentials("ann", "q")
    roles.assign("ann", OTHER)
    assert roles.credentials("ann", "p")
    roles.assign("ann", None)
    assert roles.credentials("ann", "p") is None


def test_another_process_learns_of_a_change_within_seconds(
    roles: StsTaskRoles, open_roles: Any, sts: Stubber, clock: SetClock
) -> None:
    other: StsTaskRoles = open_roles()
    assert other.credentials("ann", "p") is None
    roles.assign("ann", ROLE)
    assert other.credentials("ann", "p") is None
    clock.move(MEMORY_S)
    session(sts, clock.now())
    assert other.credentials("ann", "p")


def test_a_role_that_does_not_trust_the_deployment_is_logged_and_not_requested_again_at_once(
    roles: StsTaskRoles, sts: Stubber, clock: SetClock, caplog: pytest.LogCaptureFixture
) -> None:
    roles.assign("ann", ROLE)
    sts.add_client_error("assume_role", "AccessDenied", "not authorized to perform: sts:AssumeRole", 403)
    with caplog.at_level(logging.ERROR, "cloudpar_master"):
        assert roles.credentials("ann", "p") is None
        assert roles.credentials("ann", "p") is None
    (record,) = caplog.records
    assert f"account ann get no AWS credentials, because AWS does not let this function assume {ROLE}" in record.message
    assert "set-role` shows the trust policy" in record.message
    clock.move(REFUSED_S)
    session(sts, clock.now())
    assert roles.credentials("ann", "p")


@pytest.mark.parametrize(("code", "status"), [("Throttling", 400), ("InternalFailure", 500)])
def test_a_failure_that_passes_is_not_kept(
    roles: StsTaskRoles, sts: Stubber, clock: SetClock, code: str, status: int
) -> None:
    roles.assign("ann", ROLE)
    sts.add_client_error("assume_role", code, code, status)
    with pytest.raises(Unavailable, match="token service"):
        roles.credentials("ann", "p")
    session(sts, clock.now())
    assert roles.credentials("ann", "p")


def test_the_name_of_a_session_has_the_characters_and_the_length_that_aws_permits() -> None:
    assert session_name("é/" + "x" * 100) == f"cloudpar---{'x' * 53}"
