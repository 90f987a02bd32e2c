"""The commands for accounts and packages, and top, with a real master."""

import hashlib
import json
import os
import pty
import signal
import sqlite3
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import pytest

from cloudpar import Pool
from cloudpar.errors import PackageFailed, QuotaExhausted
from support.command import CLOUDPAR, cloudpar, cloudpar_json, environment
from support.gates import pass_gate, pipe
from support.up import Up
from support.waiting import HANG_S


def test_an_account_from_its_creation_to_its_end(cluster: Up) -> None:
    made = cloudpar_json("account", "create", "Ada", "--quota", "1h30m", *cluster.admin())
    account, token = made["account"], made["token"]
    assert (account["name"], account["state"], account["granted_us"]) == ("Ada", "active", 5_400_000_000)
    assert len(token) >= 43
    assert hashlib.sha256(token.encode()).hexdigest() not in json.dumps(made)
    with Pool(cluster.endpoint, token, progress=False) as pool:
        assert list(pool.map(abs, [-1, -2])) == [1, 2]

    listed = cloudpar_json("account", "list", *cluster.admin())["accounts"]
    assert account["account_id"] in [each["account_id"] for each in listed]
    again = cloudpar("account", "create", "Ada", "--quota", "1h", *cluster.admin())
    assert (again.returncode, again.stderr.count("\n")) == (1, 1)
    assert f"there is an account named 'Ada' already ({account['account_id']}): choose another name" in again.stderr
    assert (
        cloudpar_json("account", "grant", "Ada", "0h", *cluster.admin())["account"]["account_id"]
        == account["account_id"]
    )
    grant = ["account", "grant", account["account_id"][:10]]
    assert cloudpar_json(*grant, "10h", *cluster.admin())["account"]["granted_us"] == 41_400_000_000
    assert cloudpar_json(*grant, "-10h", *cluster.admin())["account"]["granted_us"] == 5_400_000_000

    revoked = cloudpar_json("account", "revoke", "Ada", *cluster.admin())["account"]
    assert revoked["state"] == "revoked"
    refused = cloudpar(*grant, "10h", *cluster.admin())
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (5, "", 1)
    assert "account 'Ada' was revoked" in refused.stderr
    refused = cloudpar("packages", "list", "--endpoint", cluster.endpoint, "--token", token)
    assert refused.returncode == 3
    assert "revoked" in refused.stderr


def test_an_account_without_quota_starts_nothing(cluster: Up) -> None:
    token = cloudpar_json("account", "create", "Bob", "--quota", "0s", *cluster.admin())["token"]
    with Pool(cluster.endpoint, token, progress=False) as pool, pytest.raises(QuotaExhausted):
        list(pool.map(abs, [-1]))


def test_an_account_loses_its_network_and_gets_it_back(cluster: Up) -> None:
    made = cloudpar_json("account", "create", "Dan", "--quota", "1h", "--network", "none", *cluster.admin())["account"]
    assert made["network"] == "none"
    assert "tasks of Dan: no network" in cloudpar("account", "list", *cluster.admin()).stdout
    change = ["account", "set", "Dan", "--network"]
    assert cloudpar_json(*change, "outbound", *cluster.admin())["account"]["network"] == "outbound"
    assert "tasks of Dan: no network" in cloudpar(*change, "none", *cluster.admin()).stdout
    unknown = cloudpar("account", "set", "unknown", "--network", "none", *cluster.admin())
    assert (unknown.returncode, unknown.stdout) == (5, "")


def test_a_token_is_printed_once_for_people_too(cluster: Up) -> None:
    created = cloudpar("account", "create", "Carl", "--quota", "1h", *cluster.admin())
    token = created.stdout.partition("export CLOUDPAR_TOKEN=")[2].strip()
    assert cloudpar("packages", "list", CLOUDPAR_ENDPOINT=cluster.endpoint, CLOUDPAR_TOKEN=token).returncode == 0
    elsewhere = {"CLOUDPAR_ENDPOINT": "http://127.0.0.1:1", "CLOUDPAR_ADMIN_TOKEN": "of another master"}
    listed = cloudpar("account", "list", "--data", str(cluster.folder), **elsewhere)
    assert "Carl" in listed.stdout
    assert token not in listed.stdout


@pytest.mark.parametrize("role", ["token", "worker_token", "unknown"])
def test_only_the_admin_token_administers_accounts(cluster: Up, role: str) -> None:
    token = cluster.connection.get(role, "unknown")
    refused = cloudpar("account", "list", "--endpoint", cluster.endpoint, "--admin-token", token)
    assert (refused.returncode, refused.stderr.count("\n")) == (3, 1)


def test_a_package_while_it_runs_and_after_its_cancellation(cluster: Up, tmp_path: Path) -> None:
    with cluster.pool() as pool:
        running, never = pipe(tmp_path / "running"), pipe(tmp_path / "never")
        results = pool.starmap(pass_gate, [(running, never)] * 3)
        Path(running).read_text()
        package_id = results.package_id
        assert package_id is not None
        listed = cloudpar_json("packages", "list", *cluster.user())["packages"]
        assert (listed[0]["package_id"], listed[0]["state"]) == (package_id, "running")
        shown = cloudpar_json("packages", "show", package_id[:12], *cluster.user())["package"]
        assert (shown["progress"]["tasks"], shown["name"]) == (3, "pass_gate")
        assert (
            f"package {package_id}\naccount default, "
            in cloudpar("packages", "show", package_id, *cluster.user()).stdout
        )

        cancelled = cloudpar_json("packages", "cancel", package_id, *cluster.user())
        assert (cancelled["state"], cancelled["cancelled"], cancelled["had_ended"]) == ("cancelled", 3, False)
        again = cloudpar("packages", "cancel", package_id, *cluster.user())
        assert (again.returncode, "had ended" in again.stdout) == (0, True)
        with pytest.raises(PackageFailed, match="cancelled by its account 'default'"):
            list(results)
    listed = cloudpar("packages", "list", "--data", str(cluster.folder))
    assert package_id[:8] in listed.stdout
    assert "cancelled" in listed.stdout


def flip_a_bit(path: Path, package_id: str) -> None:
    """Damage the head of a package."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")  # the master saves no head meanwhile
        (head,) = database.execute("SELECT head FROM packages WHERE package_id = ?", (package_id,)).fetchone()
        damaged = head[:100] + bytes([head[100] ^ 1]) + head[101:]
        database.execute("UPDATE packages SET head = ? WHERE package_id = ?", (damaged, package_id))
        database.execute("COMMIT")


def test_a_package_that_the_master_cannot_read_fails_at_its_client_and_is_listed_with_the_reason(
    cluster: Up, tmp_path: Path
) -> None:
    running, gate = pipe(tmp_path / "running"), pipe(tmp_path / "gate")
    with cluster.pool() as pool, cluster.pool() as other:
        results = pool.starmap(pass_gate, [(running, gate)])
        Path(running).read_text()
        flip_a_bit(cluster.folder / "master.sqlite", str(results.package_id))
        with pytest.raises(PackageFailed, match="is damaged"):
            list(results)
        assert list(other.map(abs, [-1, -2])) == [1, 2]
    listed = cloudpar("packages", "list", *cluster.user(), COLUMNS="200").stdout
    assert f"the master's head of package {results.package_id} is damaged" in listed


def test_a_package_of_another_account_is_not_found(cluster: Up) -> None:
    with cluster.pool() as pool:
        results = pool.map(abs, [-1])
        assert list(results) == [1]
        token = cloudpar_json("account", "create", "Eve", "--quota", "1h", *cluster.admin())["token"]
        other = ["--endpoint", cluster.endpoint, "--token", token]
        assert cloudpar_json("packages", "list", *other) == {"packages": []}
        for command in ("show", "cancel"):
            assert cloudpar("packages", command, str(results.package_id), *other).returncode == 5


def test_the_admin_token_shows_packages_of_all_accounts(cluster: Up) -> None:
    """These commands take the admin token by --token, too; `--admin-token` is for commands that take no other token."""
    admin = ["--endpoint", cluster.endpoint, "--token", cluster.connection["admin_token"]]
    with cluster.pool() as pool:
        package_id = pool.map(abs, [-1]).package_id
        assert package_id in [each["package_id"] for each in cloudpar_json("packages", "list", *admin)["packages"]]
        assert cloudpar_json("packages", "cancel", str(package_id), *admin)["package_id"] == package_id
    token = cloudpar_json("account", "create", "Grace", "--quota", "1h", *cluster.admin())["token"]
    with Pool(cluster.endpoint, token, progress=False) as pool:
        package_id = pool.map(abs, [-1]).package_id
        assert f"package {package_id}\naccount Grace, " in cloudpar("packages", "show", str(package_id), *admin).stdout
    narrow = cloudpar("packages", "list", *admin, COLUMNS="80").stdout.splitlines()
    row = next(line for line in narrow if str(package_id).startswith(line.split()[0]))
    assert "Grace" in row
    assert max(map(len, narrow)) <= 80
    assert len(cloudpar_json("top", "--once", *admin)["accounts"]) == len(cluster.accounts())


def test_a_cancel_by_the_operator_says_so(cluster: Up, tmp_path: Path) -> None:
    running, gate = pipe(tmp_path / "running"), pipe(tmp_path / "never")
    admin = ["--endpoint", cluster.endpoint, "--token", cluster.connection["admin_token"]]
    with cluster.pool() as pool:
        results = pool.starmap(pass_gate, [(running, gate)])
        Path(running).read_text()
        assert cloudpar_json("packages", "cancel", str(results.package_id), *admin)["cancelled"] == 1
        with pytest.raises(PackageFailed, match="cancelled by the operator"):
            list(results)


def test_top_goes_on_until_ctrl_c(cluster: Up) -> None:
    command = [*CLOUDPAR, "top", "--json", "--interval", "0.1", *cluster.user()]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as top:
        assert top.stdout is not None
        first, second = (json.loads(top.stdout.readline()) for _ in range(2))
        assert first["at"] < second["at"]
        top.send_signal(signal.SIGINT)
        _, errors = top.communicate(timeout=HANG_S)
    assert (top.returncode, errors) == (0, b"")


def test_top_in_a_terminal_draws_until_ctrl_c(cluster: Up) -> None:
    ours, theirs = pty.openpty()
    command = [*CLOUDPAR, "top", *cluster.user()]
    with subprocess.Popen(command, env=environment(TERM="xterm"), stdout=theirs, stderr=subprocess.PIPE) as top:
        os.close(theirs)
        drawn = b""
        while b"Accounts" not in drawn:
            drawn += os.read(ours, 4096)
        top.send_signal(signal.SIGINT)
        with suppress(OSError):  # the other end of the terminal has closed
            while os.read(ours, 4096):
                pass
        assert top.wait(HANG_S) == 0
    os.close(ours)


def test_top_prints_one_snapshot_into_a_pipe(cluster: Up) -> None:
    with cluster.pool() as pool:
        assert list(pool.map(abs, [-1])) == [1]
        seen = cloudpar_json("top", "--once", *cluster.user())
        assert seen["endpoint"] == cluster.endpoint
        assert len(seen["accounts"]) == 1
        assert seen["packages"]
    drawn = cloudpar("top", "--once", "--data", str(cluster.folder))
    assert drawn.returncode == 0
    assert "Accounts" in drawn.stdout


def test_a_local_master_refuses_a_role_for_tasks(cluster: Up) -> None:
    role = "arn:aws:iam::123456789012:role/cloudpar/ada"
    refused = cloudpar("account", "set-role", "default", role, *cluster.admin())
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "no deployment on AWS" in refused.stderr
