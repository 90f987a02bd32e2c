"""`make mutants-core` changes each operator and constant of the master's core, in a copy, and sees its tests fail.

A change that the tests do not notice is a missing test, a line that nothing needs, or listed in `survivors.py` with the
reason why it changes nothing that matters.
"""

import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from .mutants import SOURCES, copy
from .promises import ROOT
from .survivors import SURVIVORS

CORE: Final = Path("functions/cloudpar_master/core")
TESTS: Final = ("tests/master/core", "--ignore=tests/master/core/fold/test_properties.py")
"""The tests that must notice a change. Those with random examples would notice it only sometimes."""

SETTINGS: Final = "policy.py"
"""The only file without changes: tests/docs/test_tables.py compares its figures with the documentation."""

SWAPS: Final = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not",
    ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in", ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*",
    ast.FloorDiv: "*", ast.Mod: "+", ast.And: "or", ast.Or: "and",
}  # fmt: skip
NAMES: Final = {"min": "max", "max": "min", "any": "all", "all": "any", "ceil": "int"}
FLAGS: Final = {"frozen", "kw_only"}
LIMIT_S: Final = 120
"""A changed loop may never end. Then the tests have noticed the change."""


class Mutant(NamedTuple):
    """A changed line of a file of the core: the line, its changed form, and the whole changed file."""

    name: str
    number: int
    line: str
    changed: str
    text: bytes


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield all changes of a file."""
    text = path.read_bytes()
    starts = [0]
    for each in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(each))
    tree = ast.parse(text)
    # These flags protect from mistakes, which mypy finds, too.
    flags = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.keyword) and each.arg in FLAGS}
    for node in ast.walk(tree):
        for start, end, replacement in () if id(node) in flags else _edits(node, text, starts):
            mutated = text[:start] + replacement.encode() + text[end:]
            number = text[:start].count(b"\n")
            line, changed = (each.splitlines()[number].decode().strip() for each in (text, mutated))
            yield Mutant(str(path.relative_to(ROOT / CORE)), number + 1, line, changed, mutated)


def _edits(node: ast.AST, text: bytes, starts: list[int]) -> Iterator[tuple[int, int, str]]:
    """Yield the changes of one node: which bytes are replaced, and by what."""
    for left, operator, right in _operations(node):
        if type(operator) in SWAPS:
            start = _span(left, starts)[1]
            gap = text[start : _span(right, starts)[0]]  # the operator, and perhaps spaces and parentheses
            first = len(gap) - len(gap.lstrip(b") \n"))
            yield start + first, start + len(gap.rstrip(b"( \n")), SWAPS[type(operator)]
    match node:
        case ast.UnaryOp(op=ast.Not()):
            start = _span(node, starts)[0]
            yield start, start + len("not"), ""
        case ast.Constant(value=bool(value)):
            yield *_span(node, starts), str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield *_span(node, starts), repr(value + 1)
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            yield *_span(node.func, starts), NAMES[name]


def _operations(node: ast.AST) -> Iterable[tuple[ast.AST, ast.AST, ast.AST]]:
    """Return the operators of a node with what is left and right of each."""
    match node:
        case ast.Compare():
            return zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)
        case ast.BinOp():
            return [(node.left, node.op, node.right)]
        case ast.BoolOp():
            return [(left, node.op, right) for left, right in pairwise(node.values)]
        case _:
            return []


def _span(node: Any, starts: list[int]) -> tuple[int, int]:
    """Return where the bytes of a node start and end."""
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


def noticed(folder: Path, mutant: Mutant) -> bool:
    """Whether a test fails in a copy with the change."""
    file = folder / CORE / mutant.name
    before = file.read_bytes()
    file.write_bytes(mutant.text)
    near = Path(TESTS[0], mutant.name).with_name(f"test_{file.name}")
    try:
        # Most changes are noticed by the tests of the same file, which take a few seconds.
        return ((folder / near).exists() and not passes(folder, str(near))) or not passes(folder)
    finally:
        file.write_bytes(before)


def passes(folder: Path, *tests: str) -> bool:
    """Whether these tests pass in a copy; without names, all tests of the core."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(folder / source) for source in SOURCES), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    options = "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"
    command = [sys.executable, "-m", "pytest", *options, *(tests or TESTS)]
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


@click.command()
@click.option("--only", default="", help="Change the files whose path in the core contains this.")
def main(only: str) -> None:
    """Make each change; exit code 1 if the tests do not notice one that survivors.py does not list."""
    files = [path for path in sorted((ROOT / CORE).rglob("*.py")) if only in str(path.relative_to(ROOT / CORE))]
    files = [path for path in files if path.name != SETTINGS]
    unlisted = count = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy(folder)
        if not passes(folder):
            raise click.ClickException("the tests of the core fail without any change")
        for mutant in (mutant for path in files for mutant in mutants(path)):
            count += 1
            if noticed(folder, mutant):
                continue
            reason = SURVIVORS.get((mutant.name, mutant.line, mutant.changed))
            unlisted += reason is None
            click.echo(f"{mutant.name}:{mutant.number}: {mutant.line}  ->  {mutant.changed}: {reason or 'NOT NOTICED'}")
    click.echo(f"{count} changes, {unlisted} of them neither noticed nor listed")
    sys.exit(1 if unlisted or not count else 0)


if __name__ == "__main__":
    main()
