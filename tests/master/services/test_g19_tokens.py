"""Tokens: which routes refuse which, how they are compared, how soon a revoked one is refused, and their storage."""

import hmac
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloudpar_master.ports import AccountRecord
from cloudpar_master.services import access
from cloudpar_master.services.backend import hash_token
from cloudpar_master.services.dispatcher import OPEN_TO_ADMIN
from cloudpar_protocol import codec, routes
from cloudpar_protocol.errors import Forbidden, InvalidToken
from cloudpar_protocol.routes import ROUTES, Route
from cloudpar_protocol.tokens import has_checksum
from cloudpar_protocol_tools.samples import samples
from support.command import cloudpar_json
from support.up import Up
from support.world import World

ROLES = {"worker": "worker", "admin": "admin", "user": "ann"}
"""A token of each role in these tests' world."""


def knock(world: World, route: Route[Any, Any], token: str | None) -> None:
    world.dispatcher.admit(route.name, token, codec.encode(samples(route.request)[0]), codec.MSGPACK)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_g19_every_route_refuses_foreign_tokens(
    world: World, ann: AccountRecord, bob: AccountRecord, route: Route[Any, Any], reached: Callable[[str], None]
) -> None:
    world.backend.accounts.revoke(bob.account_id)
    unknown = [None, "", "unknown", "bob", ann.token_hash, hash_token("worker"), hash_token("admin"), "ann ", "Ann"]
    for token in unknown:
        with pytest.raises(InvalidToken):
            knock(world, route, token)
    others = [role for role in ROLES if route.role not in {"any", role}]
    if route.name in OPEN_TO_ADMIN:
        others.remove("admin")
    for role in others:
        with pytest.raises(Forbidden) as refused:
            knock(world, route, ROLES[role])
        text = f"{route.name} takes a token for the role '{route.role}', and this one is for '{role}'"
        assert str(refused.value) == text
    for role in ROLES.keys() - others:
        knock(world, route, ROLES[role])
    reached(f"all {len(ROUTES)} routes refuse unknown, revoked, hashed and other roles' tokens")


def test_g19_comparison_takes_no_notice_of_where_tokens_differ(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """compare_digest compares hashes. Users' accounts are found by the hash, whose bytes no caller can choose."""
    compared: list[tuple[str, str]] = []

    class Watching:
        @staticmethod
        def compare_digest(one: str, other: str) -> bool:
            compared.append((one, other))
            return hmac.compare_digest(one, other)

    monkeypatch.setattr(access, "hmac", Watching)
    with pytest.raises(InvalidToken):
        access.identify(world.backend, "guess")
    assert compared == [(hash_token("guess"), hash_token("worker")), (hash_token("guess"), hash_token("admin"))]


def test_g19_a_missing_or_unknown_token_is_refused_with_the_fix(world: World) -> None:
    """The master cannot know which role an unknown token was meant for."""
    with pytest.raises(InvalidToken, match="CLOUDPAR_TOKEN or Pool"):
        access.identify(world.backend, None)
    with pytest.raises(InvalidToken, match=r"unknown here.* or ask the operator for one") as refused:
        access.identify(world.backend, "guess")
    for role in ("", "WORKER_", "ADMIN_"):
        assert f"CLOUDPAR_{role}TOKEN" in str(refused.value)


def test_g19_a_revoked_token_is_refused_at_once_with_the_fix(world: World, ann: AccountRecord) -> None:
    knock(world, routes.HELLO, "ann")
    world.backend.accounts.revoke(ann.account_id)
    with pytest.raises(InvalidToken, match="the token of account 'ann' was revoked: ask the operator for a new one"):
        knock(world, routes.HELLO, "ann")


def test_g19_no_token_is_on_disk_but_in_the_file_for_clients(tmp_path: Path, reached: Callable[[str], None]) -> None:
    folder = tmp_path / "data"
    with Up(folder, workers=1) as up:
        made = cloudpar_json("account", "create", "ann", "--quota", "1h", *up.admin())
        tokens = [made["token"], *(up.connection[name] for name in ("token", "worker_token", "admin_token"))]
        with up.pool() as pool:
            assert list(pool.map(abs, [-1])) == [1]
        _, errors = up.end()
    for token in tokens:
        assert has_checksum(token)  # of 256 random bits, in digits of base 62
    assert len(set(tokens)) == 4
    files = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    connection = files.pop("connection.json")
    assert (folder / "connection.json").stat().st_mode & 0o077 == 0
    assert all(token.encode() in connection for token in tokens[1:])
    assert {"master.sqlite", "audit.jsonl"} <= files.keys()
    for token in tokens:
        assert token not in errors
        assert not [name for name, content in files.items() if token.encode() in content]
    with sqlite3.connect(folder / "master.sqlite") as database:
        hashes = {row[0] for row in database.execute("SELECT token_hash FROM accounts")}
    assert {hash_token(tokens[0]), hash_token(tokens[1])} <= hashes
    database.close()
    reached("256 bits each; only hashes in tables; 0 plaintexts in tables, logs and blobs")
