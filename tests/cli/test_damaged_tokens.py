"""A token that was not copied whole is refused by its checksum, before anything is sent."""

import socket

import pytest

from cloudpar.cli.application import run
from cloudpar.cli.exit_codes import USAGE
from cloudpar_protocol.tokens import new_token

TOKEN = new_token()
USERS = [["packages", "list"], ["packages", "show", "5f"], ["packages", "cancel", "5f"], ["top", "--once"]]
OPERATORS = [
    ["account", "list"], ["account", "create", "ada", "--hours", "1"], ["account", "grant", "ada", "1h"],
    ["account", "revoke", "ada"], ["workers"],
]  # fmt: skip
COMMANDS = [
    *((command, "--token") for command in [*USERS, ["worker", "--executors", "1"]]),
    *((command, "--admin-token") for command in OPERATORS),
]


@pytest.mark.parametrize(
    "damaged", [TOKEN[:-1], TOKEN[1:], TOKEN[:30] + "-" + TOKEN[31:]], ids=["end", "start", "middle"]
)
@pytest.mark.parametrize(
    ("command", "option"), COMMANDS, ids=lambda part: part if isinstance(part, str) else " ".join(part)
)
def test_each_command_refuses_a_damaged_token_without_a_connection(
    command: list[str], option: str, damaged: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        endpoint = f"http://127.0.0.1:{listening.getsockname()[1]}"
        code = run([*command, "--endpoint", endpoint, option, damaged])
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()
    assert code == USAGE
    printed = capsys.readouterr()
    assert "is not whole, or has a typing error: copy it again" in printed.err
    assert damaged not in printed.out + printed.err
