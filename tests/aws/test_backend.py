"""What a master on AWS is made of."""

import msgspec
import pytest

from aws.stores import CONTRACT
from cloudpar_master.adapters.aws.backend import POLICY, from_environment, read_policy
from cloudpar_master.adapters.aws.fleet import AutoScalingFleet
from cloudpar_master.adapters.aws.package_store import DAY_S
from cloudpar_master.core.fleet_size import Work
from cloudpar_master.ports.fleet import StandingFleet
from cloudpar_master.services.result_pages import EARLIER_KEPT_BYTES
from cloudpar_protocol.limits import INLINE_CODE_BYTES

ENVIRONMENT = {
    "CLOUDPAR_PACKAGE_TABLE": "packages",
    "CLOUDPAR_ACCOUNT_TABLE": "accounts",
    "CLOUDPAR_QUEUE_URL": "live",
    "CLOUDPAR_DEAD_LETTER_QUEUE_URL": "dead",
    "CLOUDPAR_BUCKET": "bucket",
}


def test_the_queue_forgets_no_chunk_of_a_package_that_may_run_still() -> None:
    """SQS keeps a message for 14 days at most, and a chunk may wait that long for a worker."""
    retention_s = CONTRACT["queue"]["retentionDays"] * DAY_S
    assert POLICY.lifetime_s <= retention_s <= 14 * DAY_S


def test_all_packages_whose_results_an_earlier_release_keeps_are_kept() -> None:
    """That release does not count inline task code. It may answer with some results missing if this release deletes
    results that it believes to be kept."""
    assert POLICY.kept_bytes >= EARLIER_KEPT_BYTES + INLINE_CODE_BYTES


def test_without_a_fleet_and_without_tokens() -> None:
    deployment = from_environment(ENVIRONMENT)
    assert isinstance(deployment.fleet, StandingFleet)
    assert (deployment.worker_token_hash, deployment.admin_token_hash) == ("", "")
    assert deployment.policy == POLICY
    deployment.fleet.grow([Work(1, None, 1)])


def test_a_master_with_a_fleet_group_enlarges_this_group() -> None:
    deployment = from_environment(ENVIRONMENT | {"CLOUDPAR_FLEET_GROUP": "g"})
    assert isinstance(deployment.fleet, AutoScalingFleet)


def test_a_function_that_checks_no_worker_token_reads_no_secret() -> None:
    secret = ENVIRONMENT | {"CLOUDPAR_WORKER_TOKEN_SECRET": "arn"}
    assert from_environment(secret, worker_token=False).worker_token_hash == ""


@pytest.mark.parametrize("name", ENVIRONMENT)
def test_a_missing_variable_is_named(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        from_environment({other: value for other, value in ENVIRONMENT.items() if other != name})


def test_a_policy_overrides_figures() -> None:
    policy = read_policy('{"lease_s": 5, "first_window": 3}')
    assert (policy.lease_s, policy.first_window, policy.chunk_target_us) == (5.0, 3, POLICY.chunk_target_us)


@pytest.mark.parametrize("text", ['{"nonsense": 1}', "[]", '{"first_window": 1.5}', "x"])
def test_an_invalid_policy_is_refused(text: str) -> None:
    with pytest.raises((ValueError, msgspec.DecodeError)):
        read_policy(text)
