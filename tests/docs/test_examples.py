"""The examples in docstrings and in the documentation do what they show."""

import ast
import doctest
import importlib.util
import os
import pkgutil
import shlex
import subprocess
import sys
from itertools import chain
from pathlib import Path
from types import ModuleType

import click
import pytest

import cloudpar
import cloudpar_master
import cloudpar_protocol
import cloudpar_worker
from cloudpar.cli.application import application
from docs import pages
from docs.pages import ROOT, Block
from docs.reader import steps
from support.command import environment
from support.shared_up import cluster_of
from support.up import Up

PACKAGES = (cloudpar_protocol, cloudpar, cloudpar_master, cloudpar_worker)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

RUN, CHECKED = {"pycon", "python", "console", "sh", "js", "py"}, {"mermaid", "text", "toml", "json", "csharp"}
"""The languages whose blocks the tests run (for sh: parse), and those whose blocks contain nothing to run."""


def _modules(package: ModuleType) -> list[str]:
    inner = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [package.__name__, *(info.name for info in inner if not info.name.endswith("__main__"))]


MODULES = {package.__name__: _modules(package) for package in PACKAGES}


def _examples(name: str) -> list[doctest.DocTest]:
    module = importlib.import_module(name)
    # Functions that are defined here travel as those of a user's script do.
    names = vars(module) | {"__name__": "__main__"}
    found = doctest.DocTestFinder(exclude_empty=True).find(module, name, globs=names)
    return [test for test in found if test.examples]


EXAMPLES = {name: _examples(name) for names in MODULES.values() for name in names}


up = cluster_of(workers=1)


# docstrings


@pytest.mark.parametrize("example", [*chain.from_iterable(EXAMPLES.values())], ids=lambda example: example.name)
def test_a_docstrings_examples_print_what_it_shows(example: doctest.DocTest) -> None:
    outcome = doctest.DocTestRunner(optionflags=OPTIONS).run(example)
    assert (outcome.failed, outcome.attempted) == (0, len(example.examples))


@pytest.mark.parametrize("package", MODULES)
def test_every_package_has_examples(package: str) -> None:
    assert any(EXAMPLES[name] for name in MODULES[package])


def test_no_example_is_left_out() -> None:
    for package in PACKAGES:
        for path in sorted(Path(package.__path__[0]).rglob("*.py")):
            written = sum(line.lstrip(' r"').startswith(">>> ") for line in path.read_text().splitlines())
            parts = path.relative_to(Path(package.__path__[0]).parent).with_suffix("").parts
            name = ".".join(part for part in parts if part != "__init__")
            found = sum(len(test.examples) for test in EXAMPLES.get(name, ()))
            assert found == written, f"{path} has {written} examples, of which {found} are found"


# pages


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_says_what_it_is(page: Path) -> None:
    for block in pages.blocks(page):
        assert block.language in RUN | CHECKED, block.name
    # Indented blocks and unclosed fences would go unnoticed.
    lines = page.read_text(encoding="utf-8").splitlines()
    assert sum(line.lstrip().startswith("```") for line in lines) == 2 * len(pages.blocks(page))
    if page.name != "reference.md":
        written = sum(line.startswith(">>> ") for line in lines)
        shown = "".join(block.text for block in pages.blocks(page) if block.language == "pycon")
        assert len(doctest.DocTestParser().get_examples(shown)) == written


@pytest.mark.parametrize("page", sorted({block.page for block in pages.of("pycon")}), ids=lambda page: page.name)
def test_a_pages_python_session_prints_what_it_shows(page: Path, up: Up) -> None:
    known = {"endpoint": up.endpoint, "token": up.connection["token"]}
    outcome = doctest.testfile(str(page), module_relative=False, globs=known, optionflags=OPTIONS, encoding="utf-8")
    assert outcome.failed == 0
    assert outcome.attempted > 0


@pytest.mark.parametrize("block", pages.of("python"), ids=lambda block: block.name)
def test_a_pages_program_prints_what_it_shows(block: Block, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(block.text, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, str(script)], env=environment(), cwd=tmp_path, capture_output=True, text=True, check=False,
        timeout=100,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    assert block.then is None or ended.stdout == block.then


@pytest.mark.parametrize("program", ["README.md", "examples/quickstart.py"])
def test_a_first_program_imports_only_what_pip_install_brings(program: str) -> None:
    path = ROOT / program
    texts = (
        [path.read_text()] if path.suffix == ".py" else [each.text for each in pages.of("python") if each.page == path]
    )
    assert texts
    for node in chain.from_iterable(ast.walk(ast.parse(text)) for text in texts):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        assert {name.partition(".")[0] for name in names} <= {"cloudpar", *sys.stdlib_module_names}


@pytest.mark.parametrize("page", sorted({block.page for block in pages.of("console")}), ids=lambda page: page.name)
def test_a_pages_commands_print_what_it_shows(page: Path, up: Up, tmp_path: Path) -> None:
    """All commands of a page run in one shell, each followed by a mark that separates the outputs."""
    mark = "-- next --"
    sessions = [block for block in pages.of("console") if block.page == page]
    typed = [step for block in sessions for step in steps(block)]
    script = "".join(f"{{ {command}; }} 2>&1\necho '{mark}'\n" for command, _ in typed)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        ["/bin/sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100,
        env=environment(
            PATH=path, DATA=str(up.folder), COLUMNS="100",
            CLOUDPAR_ENDPOINT=up.endpoint, CLOUDPAR_TOKEN=up.connection["token"],
        ),
    )  # fmt: skip
    outputs = ended.stdout.split(f"{mark}\n")
    assert ended.stderr == ""
    assert len(outputs) == len(typed) + 1
    for (command, wanted), output in zip(typed, outputs, strict=False):
        assert doctest.OutputChecker().check_output(wanted, output, OPTIONS), (command, output)
        assert "Traceback" not in output, (command, output)


@pytest.mark.parametrize("block", pages.of("sh"), ids=lambda block: block.name)
def test_a_command_of_a_shell_block_exists(block: Block) -> None:
    for line in block.text.splitlines():
        words = shlex.split(line, comments=True)
        match words:
            case ["make", target]:
                assert f"\n{target}: " in (ROOT / "Makefile").read_text()
            case [("cloudpar" | ".venv/bin/cloudpar"), *arguments]:
                parse(arguments)
            case [".venv/bin/pytest", place, *_]:
                assert (ROOT / place).exists()
            case [".venv/bin/python", "-m", module]:
                assert importlib.util.find_spec(module) is not None
            case ["rm", path] | [".venv/bin/python", path, *_]:
                assert (ROOT / path).is_file()
            case [script, *arguments] if script.endswith(".sh"):
                options = {f"{word})" for word in arguments if word.startswith("--")}
                assert options <= set((ROOT / script).read_text().split()), line
            case ["export", setting]:
                assert setting.startswith("CLOUDPAR_")
            case ["curl", *_] | []:
                pass
            case _:
                raise AssertionError(line)


def parse(arguments: list[str]) -> None:
    """Parse a command line as the program would, without running it."""
    command: click.Command = application
    while isinstance(command, click.Group):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    command.make_context("cloudpar", arguments)
