"""A reader who follows a tutorial: saves its programs, types its commands, and compares the output."""

import doctest
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Self

from docs.pages import Block, blocks
from support.command import environment
from support.waiting import HANG_S

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PORT = "8642"
"""The master's default port; the reader replaces it by a free one."""

_SAVED_AS = re.compile(r"[Ss]ave this[^`]*\s+as\s+`([\w.]+)`")
_CTRL_C = re.compile(r"Press Ctrl-C in the terminal of the second `(cloudpar \w+)`")
_PRINTED = re.compile(r"export (CLOUDPAR_\w+)=(\S+)")


class Terminal:
    """A terminal with a command that runs until Ctrl-C."""

    def __init__(self, command: str, folder: Path, variables: dict[str, str]) -> None:
        self.command = command
        self.shown = ""
        self._screen, inner = pty.openpty()
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"],
            cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=inner, stderr=inner, start_new_session=True,
        )  # fmt: skip
        os.close(inner)

    def show(self, wanted: str) -> None:
        """Wait until the command has shown what the page says."""
        while not doctest.OutputChecker().check_output(wanted, self.shown, OPTIONS):
            assert self._read(), f"{self.command} shows\n{self.shown}\ninstead of\n{wanted}"

    def _read(self) -> bool:
        """Wait for more output; False if the command has ended, or prints nothing more within a minute."""
        ready, _, _ = select.select([self._screen], [], [], HANG_S)
        try:
            more = os.read(self._screen, 65_536).decode() if ready else ""
        except OSError:  # a terminal whose last writer has ended
            more = ""
        self.shown += more.replace("\r\n", "\n")
        return bool(more)

    def interrupt(self) -> None:
        """Press Ctrl-C and wait for the end."""
        self._process.send_signal(signal.SIGINT)
        while self._read():
            """Read on: a full terminal would block the command's last output."""
        self._process.wait(HANG_S)
        os.close(self._screen)
        assert self._process.returncode in {0, 130}, self.shown


class Reader:
    """Follows one page in one folder."""

    def __init__(self, page: Path, folder: Path, **variables: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = str(free.getsockname()[1])
        self._text = page.read_text(encoding="utf-8")
        self._folder = folder
        self._terminals: list[Terminal] = []
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._variables = environment(
            PATH=path, HOME=str(folder / "home"), XDG_DATA_HOME="", XDG_CONFIG_HOME="", COLUMNS="200", LINES="50",
            PYTHONDONTWRITEBYTECODE="1", **variables,
        )  # fmt: skip
        self._page = page

    def follow(self) -> int:
        """Follow the whole page and return the number of commands."""
        commands, end = 0, 0
        for block in blocks(self._page):
            start = self._text.index(f"```{block.language}\n{block.text}", end)
            self._prepare(self._text[end:start], block)
            end = start + len(block.text)
            for command, wanted in steps(block):
                self._type(command.replace(PORT, self._port), wanted.replace(PORT, self._port))
                commands += 1
        return commands

    def _prepare(self, prose: str, block: Block) -> None:
        """Do what the text before a block says: press Ctrl-C, or save the block as a file."""
        for command in _CTRL_C.findall(prose):
            running = [terminal for terminal in self._terminals if terminal.command.startswith(command)]
            self._terminals.remove(running[1])
            running[1].interrupt()
        names = _SAVED_AS.findall(prose) or re.findall(r"^and this as `([\w.]+)`", prose, re.MULTILINE)
        if block.language in {"python", "js"}:
            assert names, f"{block.name}: nothing says under which name to save this program"
            (self._folder / names[-1]).write_text(block.text, encoding="utf-8")

    def _type(self, command: str, wanted: str) -> None:
        words = command.split()
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self._variables[name] = self._printed(name) if value == "..." else value
        elif words[:2] in (["cloudpar", "up"], ["cloudpar", "worker"]):
            free = f" --port {self._port}" if words[1] == "up" else ""
            terminal = Terminal(command + free, self._folder, self._variables)
            self._terminals.append(terminal)
            terminal.show(wanted)
        else:
            ended = subprocess.run(
                ["/bin/sh", "-c", f"{command} 2>&1"],
                cwd=self._folder, env=self._variables, capture_output=True, text=True, check=False, timeout=100,
            )  # fmt: skip
            assert doctest.OutputChecker().check_output(wanted, ended.stdout, OPTIONS), f"{command}\n{ended.stdout}"

    def _printed(self, name: str) -> str:
        """Return the value that the master has printed for a variable, which the page shows as dots."""
        return next(each[2] for each in _PRINTED.finditer(self._terminals[0].shown) if each[1] == name)

    def __enter__(self) -> Self:
        (self._folder / "home").mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        for terminal in reversed(self._terminals):
            terminal.interrupt()


def steps(block: Block) -> list[tuple[str, str]]:
    """Return the commands of a terminal session, each with its output."""
    if block.language != "console":
        return []
    parts = [part.partition("\n") for part in ("\n" + block.text).split("\n$ ")[1:]]
    return [(command, wanted if wanted.endswith("\n") or not wanted else f"{wanted}\n") for command, _, wanted in parts]
