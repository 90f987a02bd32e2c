# ruff: noqa: SIM115 - the fixture, or the executor, closes what is opened here
"""Open files stay in their process, in every mode, and wherever a task or its arguments contain them."""

import bz2
import codecs
import gzip
import io
import lzma
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cloudpar import Pool
from cloudpar._serialization.pickling import dumps
from cloudpar.errors import SerializationError, TaskRaised

WAYS: dict[str, Callable[[Path], Any]] = {
    "text, to read": lambda path: path.open(),
    "text, to write": lambda path: path.open("w"),
    "text, to do both": lambda path: path.open("r+"),
    "bytes, to read": lambda path: path.open("rb"),
    "bytes, to write": lambda path: path.open("wb"),
    "bytes, to do both": lambda path: path.open("rb+"),
    "unbuffered": lambda path: path.open("rb", buffering=0),
    "by a descriptor": lambda path: os.fdopen(os.open(path, os.O_RDONLY)),
    "codecs": lambda path: codecs.open(str(path)),
    "gzip": lambda path: gzip.open(path, "wt"),
    "bz2": lambda path: bz2.open(path, "wt"),
    "lzma": lambda path: lzma.open(path, "wb"),
    "a temporary file of text": lambda _: tempfile.TemporaryFile("w+"),
    "a temporary file of bytes": lambda _: tempfile.TemporaryFile(),
    "a named temporary file of text": lambda _: tempfile.NamedTemporaryFile("w+"),
    "a named temporary file of bytes": lambda _: tempfile.NamedTemporaryFile(),
    "a spooled temporary file of text": lambda _: tempfile.SpooledTemporaryFile(mode="w+"),
    "a spooled temporary file of bytes": lambda _: tempfile.SpooledTemporaryFile(),
    "text around bytes in memory": lambda _: io.TextIOWrapper(io.BytesIO(b"text")),
    "standard input": lambda _: io.TextIOWrapper(io.FileIO(0, closefd=False)),
}
HELD: dict[str, Callable[[Any], Any]] = {
    "alone": lambda file: file,
    "in a list": lambda file: [1, file],
    "in a dict": lambda file: {"log": file},
    "in an object": lambda file: SimpleNamespace(file=file),
    "in an iterator": enumerate,
    "in a function": lambda file: lambda: file,
    "in a method": lambda file: file.read,
}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """Open a file in one of WAYS, and close it at the end of the test."""
    path = tmp_path / "file"
    path.write_text("first\nsecond\n")
    with ExitStack() as stack:
        yield lambda way: stack.enter_context(WAYS[way](path))


@pytest.mark.parametrize("way", WAYS)
def test_an_open_file_is_refused_with_what_to_do_instead(opened: Callable[[str], Any], way: str) -> None:
    file = opened(way)
    with pytest.raises(SerializationError, match="open it inside the task") as raised:
        dumps(lambda: len(file.read()), "the function")
    assert "the captured variable `file`" in str(raised.value)


@pytest.mark.parametrize("held", HELD)
def test_an_open_file_is_refused_wherever_it_is_held(opened: Callable[[str], Any], held: str) -> None:
    thing = HELD[held](opened("text, to read"))
    with pytest.raises(SerializationError, match=r"cannot pickle '_io.TextIOWrapper' object.* inside the task"):
        dumps(thing, "the argument")


def test_a_closed_file_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        pass
    with pytest.raises(SerializationError, match="open it inside the task"):
        dumps(file, "the argument")


def test_every_call_of_a_pool_refuses_an_open_file(any_pool: Pool, opened: Callable[[str], Any]) -> None:
    file = opened("text, to read")
    calls: list[Callable[[], Any]] = [
        lambda: list(any_pool.map(lambda _: file.read(), range(4))),
        lambda: list(any_pool.map(len, [file])),
        lambda: list(any_pool.starmap(print, [(1, file)])),
        lambda: any_pool.submit(len, file),
        lambda: any_pool.submit(print, "text", file=file),
        lambda: any_pool.parallel_for(0, 2, lambda _: file.read()),
    ]
    for call in calls:
        with pytest.raises(SerializationError, match="open it inside the task"):
            call()


@pytest.mark.parametrize("mode", ["r", "r+", "rb", "w"])
def test_an_open_file_is_no_result_of_a_task(embedded: Pool, tmp_path: Path, mode: str) -> None:
    path = tmp_path / "file"
    path.write_text("text")
    with pytest.raises(SerializationError, match=r"does not pickle.*cannot pickle '_io.*return plain data"):
        embedded.submit(lambda: [path.open(mode)]).result()


def test_an_exception_with_an_open_file_names_the_file(embedded: Pool) -> None:
    def fail() -> None:
        error = ValueError("a bad line")
        error.file = Path(os.devnull).open()  # type: ignore[attr-defined]
        raise error

    with pytest.raises(TaskRaised, match=r"attribute 'file' does not pickle.*cannot pickle '_io.TextIOWrapper'"):
        embedded.submit(fail).result()


def test_streams_in_memory_travel_as_copies_with_their_positions(embedded: Pool) -> None:
    text, data = io.StringIO("first\nsecond\n"), io.BytesIO(b"12345")
    text.readline()
    data.read(2)
    assert list(embedded.map(io.StringIO.read, [text] * 3)) == ["second\n"] * 3
    assert embedded.submit(lambda: len(text.read())).result() == 7
    assert embedded.submit(data.read).result() == b"345"
    assert (text.tell(), data.tell()) == (6, 2)
    assert embedded.submit(lambda: io.StringIO("made there")).result().read() == "made there"


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_the_standard_streams_are_those_of_the_process_that_has_them(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    class Tee(io.TextIOBase):
        """A stream like those of notebooks and test runners."""

    for stream in io.TextIOWrapper(io.BytesIO()), Tee():
        monkeypatch.setattr(sys, name, stream)
        sent = dumps(lambda stream=stream: stream, "the function")
        with monkeypatch.context() as there:
            there.setattr(sys, name, "the stream of the executor")
            assert pickle.loads(sent)() == "the stream of the executor"


def test_text_that_a_task_prints_to_a_captured_stdout_is_its_output() -> None:
    stream = sys.stdout
    lines = list[str]()
    with Pool("local", workers=1, output=lambda _index, out, _err: lines.append(out)) as pool:
        pool.submit(lambda: print("a line", file=stream)).result()
    assert lines == ["a line\n"]


def test_standard_input_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    with io.TextIOWrapper(io.BytesIO(b"typed")) as typed:
        monkeypatch.setattr(sys, "stdin", typed)
        with pytest.raises(SerializationError, match="read it here"):
            dumps(lambda: len(typed.read()), "the function")
