"""A deployment goes from one release to another and back, while its tables hold accounts and packages of every kind."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aws import engines
from aws.stores import clients, create_tables, name_of
from cloudpar_master.services.backend import hash_token
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import Account
from cloudpar_protocol.client_messages import Acknowledge, CancelTasks, Hello
from cloudpar_protocol.errors import InvalidToken
from cloudpar_protocol.worker_messages import ExtendLeases, Lease, LeaseRef

from .releases import LAST, TOKEN, Deployment, Functions, last_and_today
from .story import CHARGE_US, LARGE, MEDIUM, SMALL, Story

REVOKED, POOR = TOKEN[::-1], TOKEN.swapcase()
TOKENS = {"ada": TOKEN, "grace": REVOKED, "joe": POOR}
QUOTAS_US = {"ada": 10**10, "grace": 10**9, "joe": 500}
GRANT_US = 10**9


def create_account(on: Deployment, name: str) -> Account:
    """Create an account. A repeated call changes nothing."""
    facts = {"token_hash": hash_token(TOKENS[name]), "quota_us": QUOTAS_US[name]}
    return on.operate(routes.CREATE_ACCOUNT, idempotency_key=name, name=name, **facts).account


def grant(on: Deployment, account_id: str) -> Account:
    """Grant compute time. A repeated call changes nothing."""
    return on.operate(routes.GRANT_QUOTA, idempotency_key="g", account_id=account_id, quota_us=GRANT_US).account


def accounts(on: Deployment) -> dict[str, Account]:
    """Return the accounts by their names."""
    return {each.name: each for each in on.operate(routes.LIST_ACCOUNTS).accounts}


@pytest.fixture
def both(stack: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Functions, Functions]]:
    """The functions of the last release and of today. Their tables are on AWS's own engine."""
    del stack
    tables = engines.dynamodb_local()
    create_tables(clients(tables), name_of(tmp_path))
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", tables)
    with last_and_today(tmp_path) as both:
        yield both


def open_accounts(on: Deployment) -> None:
    """Create the accounts, grant one of them more compute time, and revoke one."""
    made = {name: create_account(on, name) for name in TOKENS}
    grant(on, made["ada"].account_id)
    on.operate(routes.REVOKE_ACCOUNT, account_id=made["grace"].account_id)


def end_packages(story: Story, on: Deployment) -> None:
    """Leave packages that have ended. One of them is acknowledged, and one has used up its account's quota."""
    for name, size in {"ended": SMALL, "ended medium": MEDIUM, "ended large": LARGE, "acknowledged": LARGE}.items():
        story.start(on, name, size=size)
    story.start(on, "too long", token=POOR)
    story.run(on)
    gone = story.packages.pop("acknowledged").package_id
    on.ask(routes.ACKNOWLEDGE, Acknowledge(package_ids=[gone]), TOKEN)


def cancel_package(story: Story, on: Deployment) -> list[Lease]:
    """Cancel a package while a worker has all its tasks. Returns the leases of the worker."""
    story.start(on, "cancelled")
    leases = story.retrieve(on)
    on.ask(routes.CANCEL_TASKS, CancelTasks(package_id=story.packages["cancelled"].package_id), TOKEN)
    return leases


def run_halves(story: Story, on: Deployment) -> list[Lease]:
    """Publish the second half of each chunk of two packages, and return the leases, which the worker still has."""
    story.start(on, "half done", size=MEDIUM)
    story.start(on, "half done, uploaded", size=LARGE, data=story.upload(on))
    leases = story.retrieve(on)
    for lease in leases:
        story.publish(on, lease, first=lease.start + 1, last=lease.end, seq=0)
    return leases


def check_repeated_calls(story: Story, before: Deployment, on: Deployment) -> None:
    """Repeat calls that the release `before` has answered: accounts, tokens and packages are known, and stay as are."""
    known = accounts(before)
    assert accounts(on) == known
    assert {name: create_account(on, name).account_id for name in TOKENS} == {
        name: each.account_id for name, each in known.items()
    }
    assert grant(on, known["ada"].account_id).granted_us == QUOTAS_US["ada"] + GRANT_US
    seal_key = on.ask(routes.HELLO, Hello(), TOKEN).seal_key
    assert seal_key == before.ask(routes.HELLO, Hello(), TOKEN).seal_key is not None
    with pytest.raises(InvalidToken):
        on.ask(routes.HELLO, Hello(), REVOKED)
    for package in story.packages.values():
        assert on.ask(routes.START_TASKS, package.start, package.token).package_id == package.package_id
    (worker,) = on.operate(routes.LIST_WORKERS).workers
    assert (worker.host, worker.executors, worker.pythons) == ("host-a", 2, ["3.11", "3.12"])


@pytest.mark.parametrize("forward", [True, False], ids=["forward and back", "back and forward"])
def test_another_release_continues_what_is_in_the_tables_and_the_first_reads_it_again(
    both: tuple[Functions, Functions], *, forward: bool, reached: Callable[..., None]
) -> None:
    before, after = map(Deployment, both if forward else both[::-1])
    story = Story()
    open_accounts(before)
    end_packages(story, before)
    cancelled = cancel_package(story, before)
    half_done = run_halves(story, before)
    story.start(before, "waiting")
    check_repeated_calls(story, before, after)

    held = [LeaseRef(**lease.identity()) for lease in cancelled + half_done]
    views = after.ask(routes.EXTEND_LEASES, ExtendLeases(worker_id="worker", leases=held)).leases
    assert [view.state for view in views] == ["ended"] * len(cancelled) + ["wanted"] * len(half_done)
    for lease in cancelled:
        story.publish(after, lease, first=lease.start, last=lease.end, seq=1)
    for lease in half_done:
        story.publish(after, lease, first=lease.start, last=lease.start + 1, seq=1)
    story.start(after, "later", size=LARGE)
    story.run(after)
    after.tick()
    read = {name: story.read(after, name) for name in story.packages}
    expected = dict.fromkeys(story.packages, ("completed", CHARGE_US))
    assert read == {**expected, "cancelled": ("cancelled", CHARGE_US), "too long": ("failed", QUOTAS_US["joe"])}

    assert {name: story.read(before, name) for name in story.packages} == read
    story.start(before, "last")
    story.run(before)
    assert story.read(before, "last") == ("completed", CHARGE_US)
    now = accounts(before)
    assert now == accounts(after)
    of_ada = [each.package_id for each in story.packages.values() if each.token == TOKEN]
    acknowledged = 1
    assert now["ada"].spent_us == (len(of_ada) + acknowledged) * CHARGE_US
    assert (now["ada"].reserved_us, now["joe"].reserved_us, now["joe"].spent_us) == (0, 0, QUOTAS_US["joe"])
    after.ask(routes.ACKNOWLEDGE, Acknowledge(package_ids=of_ada), TOKEN)
    for on in (before, after):
        on.tick()
        assert not any(on.status(package_id, TOKEN).results for package_id in of_ada)
    reached(f"tables of {LAST} and of today: {{packages}} packages are continued by the other", packages=len(read))
