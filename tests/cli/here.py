"""Runs the command line in this process."""

import json
from typing import Any, NamedTuple

import pytest

from cloudpar.cli.application import run


class Printed(NamedTuple):
    """What a command has printed."""

    out: str
    err: str


class Here:
    """Runs commands to their end, and checks their exit codes."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> Printed:
        self._capsys.readouterr()
        assert run(arguments) == code
        return Printed(*self._capsys.readouterr())

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Return the object that a command prints with --json, which is one line."""
        out, _ = self(*arguments, "--json", code=code)
        assert out.count("\n") == 1
        return json.loads(out)

    def error(self, *arguments: str, code: int = 8) -> str:
        """Return the line of a command's error, the last one on standard error."""
        out, err = self(*arguments, code=code)
        assert out == ""
        assert "Traceback" not in err
        last = err.splitlines()[-1]
        assert last.startswith("cloudpar: error: ")
        return last
