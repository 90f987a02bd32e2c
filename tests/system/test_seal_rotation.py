"""An operator rotates the key for seals while packages run, wait to be read, and start."""

from pathlib import Path

from cloudpar._client.connection import Connection
from cloudpar._client.retry_policy import RetryPolicy
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello
from support.command import cloudpar_json
from support.task_functions import mark_and_wait
from support.up import Up
from support.waiting import HANG_S, await_file


def test_packages_that_run_or_are_unread_during_a_rotation_can_be_read_afterwards(tmp_path: Path) -> None:
    running, gate = tmp_path / "running", tmp_path / "gate"
    with Up(tmp_path / "data", workers=1) as up, up.pool() as pool:
        unread = pool.map(str, range(5)).detach()
        left = pool.map(mark_and_wait, [(str(running), str(gate))])
        await_file(running)  # the only executor has run the other package
        key_before = pool_key(up)
        rotated = cloudpar_json("account", "rotate-seal", "default", *up.admin())
        assert rotated["account"]["name"] == "default"
        assert pool_key(up) != key_before
        gate.touch()
        assert list(left) == ["done"]
        assert list(pool.map(abs, [-1])) == [1]  # this pool was open, and goes on with the earlier key
        with up.pool() as later:
            assert later.attach(unread).results() == list(map(str, range(5)))
            fresh = later.map(abs, [-2]).detach()
        assert pool.attach(fresh).results() == [2]


def pool_key(up: Up) -> bytes | None:
    """Return the key that a new pool gets."""
    connection = Connection(up.endpoint, up.connection["token"], RetryPolicy(HANG_S))
    try:
        return connection.call(routes.HELLO, Hello()).seal_key
    finally:
        connection.close()
