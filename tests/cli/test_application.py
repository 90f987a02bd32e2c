"""An error is one line that names the fix, with a stable exit code; `import cloudpar` loads no terminal library."""

import os
import subprocess
import sys

import pytest

from cli.here import Here
from cloudpar.cli.application import application
from cloudpar.cli.version import TEXT

pytestmark = pytest.mark.usefixtures("unconfigured")

UNUSED = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nonsense"], 2, "No such command 'nonsense'"),
        (["up", "--nonsense"], 2, "--nonsense"),
        (["up", "--workers", "-1"], 2, "--workers"),
        (["up", "--port", "70000"], 2, "--port"),
        (["account", "create", "x"], 2, "--quota"),
        (["account", "create", "x", "--quota", "5"], 2, "90s, 10m, 2h"),
        (["account", "create", "x", "--quota", "-5h"], 2, "cannot be negative"),
        (["account", "create", "x", "--quota", "99999999999999h"], 2, "too long: a span has at most 53,375,995d"),
        (["account", "create", "x", "--hours", "1e30"], 2, "--hours"),
        (["account", "create", "", "--hours", "1"], 2, "it has 0 characters: give a name of 1 to 100"),
        (["account", "create", "x" * 101, "--hours", "1"], 2, "it has 101 characters"),
        (["account", "grant", "x"], 2, "SPAN"),
        (["account", "grant", "x", "-99999999999999h"], 2, "too long"),
        (["account", "--json", "--admin-token", "t", "--data", "."], 2, "leave out --admin-token, or --data"),
        (["packages", "--json", "--data", ".", "--token", "t"], 2, "leave out --token, or --data"),
        (["packages", "--json", "show", "x"], 2, "unexpected extra arguments"),
        (["workers", "--json", "--endpoint", UNUSED], 2, "--admin-token"),
        (["account", "list"], 2, "cloudpar up"),
        (["account", "list", "--endpoint", UNUSED], 2, "--admin-token"),
        (["account", "list", "--admin-token", "t", "--data", "."], 2, "leave out --admin-token, or --data"),
        (["account", "list", "--data", ".", "--endpoint", UNUSED], 2, "leave out --endpoint, or --data"),
        (["packages", "list", "--data", ".", "--token", "t"], 2, "leave out --token, or --data"),
        (["packages", "list"], 2, "cloudpar up"),
        (["packages", "list", "--endpoint", UNUSED], 2, "no token"),
        (["packages", "show", ""], 2, "it is empty"),
        (["packages", "cancel", "", "--endpoint", UNUSED, "--token", "t"], 2, "it is empty"),
        (["packages", "list", "--endpoint", "nonsense", "--token", "t"], 2, "http://"),
        (["account", "list", "--endpoint", "127.0.0.1:1", "--admin-token", "t"], 2, "'127.0.0.1:1' is not a URL"),
        (["worker", "--endpoint", "127.0.0.1:1", "--token", "t"], 2, "'127.0.0.1:1' is not a URL"),
        (["worker", "--endpoint", UNUSED, "--token", "t\n"], 2, "line break"),
        (["packages", "list", "--endpoint", UNUSED, "--token", "\N{LEFT DOUBLE QUOTATION MARK}t"], 2, "copy it again"),
        (["worker", "--token", "t"], 2, "--endpoint"),
        (["worker", "--endpoint", UNUSED], 2, "--token"),
        (["worker", "--endpoint", UNUSED, "--token", "t", "--executors", "0"], 2, "--executors"),
        (["worker", "--endpoint", UNUSED, "--token", "t", "--executors", "1001"], 2, "not in the range 1<=x<=1000"),
        (["demo", "--tasks", "0"], 2, "--tasks"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_arguments_end_with_a_line_and_an_exit_code(
    here: Here, arguments: list[str], code: int, words: str
) -> None:
    out, err = here(*arguments, code=code)
    assert out == ""
    assert err.startswith("cloudpar: error: ")
    assert err.count("\n") == 1
    assert words in err


@pytest.mark.parametrize(
    "arguments",
    [["account", "list", "--admin-token", "t"], ["packages", "list", "--token", "t"], ["worker", "--token", "t"]],
    ids=lambda arguments: arguments[0],
)
def test_an_endpoint_that_does_not_answer_is_one_line(here: Here, arguments: list[str], impatient: None) -> None:
    err = here(*arguments, "--endpoint", UNUSED, code=4).err
    assert UNUSED in err
    assert "cloudpar up" in err
    assert err.count("\n") == 1


def test_the_version_option_prints_the_release(here: Here) -> None:
    assert here("version").out.startswith("cloudpar 0.")
    assert here("--version").out == f"{TEXT}\n"
    assert '"protocol":1' in here("version", "--json").out


def test_a_command_alone_is_a_question_for_help(here: Here) -> None:
    assert "Commands:" in "".join(here(code=2))


@pytest.mark.parametrize("name", sorted(application.commands))
def test_every_command_has_help(here: Here, name: str) -> None:
    assert f"Usage: cloudpar {name}" in here(name, "--help").out


def test_a_reader_that_closes_the_pipe_is_no_error() -> None:
    command = [sys.executable, "-m", "cloudpar", "version"]
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, b"")
