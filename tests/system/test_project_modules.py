"""Scripts with modules of their own, on a pool of this machine and on workers that have none of these files."""

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.command import environment
from support.up import Up
from system.mixture import TODAY, Mixture, unpack

Run = Callable[[str], list[str]]

MODULE = """
import importlib.resources, threading
from functools import cached_property, lru_cache, singledispatch
from pathlib import Path
from . import circular

LOCK = threading.Lock()
CALLS = []

class Option:
    def __init__(self, strike):
        self.strike = strike
    @cached_property
    def price(self):
        return 2 * self.strike

@singledispatch
def kind(value):
    return "other"

@kind.register
def _(value: int):
    return "int"

@lru_cache
def slow(x):
    return 10 * x

def everything(x):
    with LOCK:
        return Option(x).price, kind(x), kind("x"), slow(x), circular.back(x)

def read(_):
    beside = Path(__file__).with_name("data").joinpath("table.csv").read_text()
    return beside == importlib.resources.files("quant").joinpath("data/table.csv").read_text() == "a,b"

def lazily(_):
    from .sub import late
    import helper
    return late.VALUE, helper.VALUE
"""
CIRCULAR = """
from . import pricing
def back(x):
    return len(pricing.CALLS) + x
"""
POOL = """
import sys
from cloudpar import Pool
from cloudpar.errors import *
pool = Pool(*sys.argv[1:3], progress=False) if sys.argv[1:] else Pool(workers=1, progress=False)
"""


@pytest.fixture(params=["here", "elsewhere"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Run a script with a pool in a folder of modules; returns the lines that it prints."""
    arguments: list[str] = []
    if request.param == "elsewhere":
        cluster: Up = request.getfixturevalue("cluster")
        arguments = [cluster.endpoint, cluster.connection["token"]]

    def run(script: str) -> list[str]:
        (tmp_path / "script.py").write_text(POOL + script + "\npool.shutdown()\n")
        command = [sys.executable, "script.py", *arguments]
        ended = subprocess.run(
            command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False, timeout=90
        )
        assert ended.returncode == 0, ended.stderr
        return [*ended.stdout.splitlines(), *ended.stderr.splitlines()]

    return run


@pytest.fixture
def quant(tmp_path: Path) -> Path:
    """Write a project's package with the usual parts of a package."""
    folder = tmp_path / "quant"
    (folder / "data").mkdir(parents=True)
    (folder / "sub").mkdir()
    for name, text in {
        "__init__.py": "", "pricing.py": MODULE, "circular.py": CIRCULAR, "data/table.csv": "a,b",
        "sub/__init__.py": "", "sub/late.py": "VALUE = 1", "../helper.py": "VALUE = 2",
    }.items():  # fmt: skip
        (folder / name).write_text(text)
    return folder


def test_modules_of_a_package_work_as_installed_ones_do(run: Run, quant: Path) -> None:
    assert (
        run("""
from quant import pricing
assert list(pool.map(pricing.everything, range(2))) == [pricing.everything(x) for x in range(2)]
assert list(pool.map(pricing.read, [0])) == [True]
assert list(pool.map(pricing.lazily, [0])) == [(1, 2)]
assert pool.submit(pricing.everything, 3).result() == pricing.everything(3)
assert list(pool.starmap(pricing.slow, [(2,)])) == [20]
assert list(pool.map(lambda option: (option.price, type(option)), [pricing.Option(3)])) == [(6, pricing.Option)]
(option,) = pool.map(pricing.Option, [4])
assert type(option) is pricing.Option
def lazily(x):
    import helper
    return helper.VALUE
assert list(pool.map(lazily, [0])) == [2]
found = [None] * 2
def body(i):
    found[i] = pricing.everything(i)
pool.parallel_for(0, 2, body)
assert found == [pricing.everything(x) for x in range(2)]
print("done")
""")[0]
        == "done"
    )


def test_functions_of_several_modules_submitted_together(run: Run, quant: Path) -> None:
    assert run("""
from quant import pricing
import helper
def own(x):
    return x + helper.VALUE
futures = [pool.submit(f, 3) for f in [own, pricing.slow, abs] * 5]
print([future.result() for future in futures] == [5, 30, 3] * 5)
""") == ["True"]


def test_an_edited_and_reloaded_module_is_picked_up(run: Run, quant: Path) -> None:
    assert run("""
import importlib, pathlib, sys
import helper
from quant import pricing
def value(_):
    return helper.VALUE, pricing.slow(1)
old = list(pool.map(value, [0]))
pathlib.Path("helper.py").write_text("VALUE = 'a longer one'")
importlib.reload(helper)
print(old, list(pool.map(value, [0])), pool.submit(value, 0).result())
""") == ["[(2, 10)] [('a longer one', 10)] ('a longer one', 10)"]


def test_state_of_a_module_lasts_in_an_executor_while_the_project_is_the_same(run: Run, quant: Path) -> None:
    assert run("""
import os
from quant import pricing
def append(_):
    pricing.CALLS.append(1)
    return os.getpid(), len(pricing.CALLS)
seen = dict(sorted(each for _ in range(3) for each in pool.map(append, range(4))))
print(sum(seen.values()))
""") == ["12"]


def test_two_projects_with_modules_of_one_name_take_turns(cluster: Up, tmp_path: Path) -> None:
    outputs = []
    scripts = []
    for name in "one", "two":
        folder = tmp_path / name
        folder.mkdir()
        (folder / "common.py").write_text(f"class Thing:\n    name = '{name}'\ndef same(t): return type(t) is Thing")
        (folder / "script.py").write_text(
            POOL
            + """
import common
for line in sys.stdin:
    print(*pool.map(lambda thing: (thing.name, common.same(thing)), [common.Thing()] * 4), flush=True)
"""
        )
        command = [sys.executable, "script.py", cluster.endpoint, cluster.connection["token"]]
        scripts.append(
            subprocess.Popen(
                command, cwd=folder, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
    for _ in range(3):
        for script in scripts:
            assert script.stdin is not None
            assert script.stdout is not None
            print("go", file=script.stdin, flush=True)
            outputs.append(script.stdout.readline().strip())
    for script in scripts:
        script.communicate(timeout=60)
    assert outputs == [" ".join([str((name, True))] * 4) for name in ("one", "two")] * 3


def test_a_c_extension_beside_the_script_is_imported(run: Run, tmp_path: Path) -> None:
    source = Path(str(find_spec("_heapq").origin))  # type: ignore[union-attr]  # any extension module in a file
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "__init__.py").write_text("")
    (tmp_path / "native" / source.name).write_bytes(source.read_bytes())
    assert run("""
from native import _heapq
assert "native" in _heapq.__file__
def first(items):
    return _heapq.heappop(items), _heapq.__name__
print(*pool.map(first, [[1, 2], [3]]))
""") == ["(1, 'native._heapq') (3, 'native._heapq')"]


def test_a_library_on_the_path_with_its_metadata_is_expected_at_the_workers(tmp_path: Path) -> None:
    library, info = tmp_path / "library" / "deep_library", tmp_path / "library" / "deep_library-1.0.dist-info"
    library.mkdir(parents=True)
    info.mkdir()
    (library / "__init__.py").write_text("import threading\nLOCK = threading.Lock()\ndef f(x): return x")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: deep_library\nVersion: 1.0\n")
    (info / "RECORD").write_text("deep_library/__init__.py,,\n")
    script = tmp_path / "script.py"
    script.write_text(
        POOL
        + f"""
sys.path.insert(0, {str(library.parent)!r})
import deep_library
from cloudpar._serialization.task_code import CodeCache
assert len(CodeCache().get(deep_library.f).data) < 100
print(*pool.map(deep_library.f, range(3)))
pool.shutdown()
"""
    )
    ended = subprocess.run(
        [sys.executable, str(script)], env=environment(), capture_output=True, text=True, check=False, timeout=90
    )
    assert (ended.stdout, ended.stderr) == ("0 1 2\n", "")


def test_nothing_of_the_project_stays_at_the_worker(
    tmp_path: Path, quant: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with Up(tmp_path / "data", workers=1) as up:
        (tmp_path / "script.py").write_text(POOL + "from quant import pricing\nprint(*pool.map(pricing.read, [0]))")
        command = [sys.executable, "script.py", up.endpoint, up.connection["token"]]
        ended = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
        assert ended.stdout == "True\n"
        assert list(temporary.glob("cloudpar-project-*/*/quant/data/table.csv"))
        up.end()
    assert not list(temporary.glob("cloudpar-project-*"))


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0"])
def test_workers_and_masters_of_earlier_releases_run_it(version: str, tmp_path: Path, quant: Path) -> None:
    old = unpack(version, tmp_path / "old")
    mixture = Mixture(TODAY, old, old)
    python = mixture.interpreter(tmp_path / "mixture")
    (tmp_path / "script.py").write_text(
        POOL
        + """
from collections import namedtuple
from quant import pricing
Row = namedtuple("Row", "x")
expected = [pricing.everything(x) for x in range(3)]
assert list(pool.map(pricing.everything, range(3))) == expected
assert list(pool.map(lambda row: pricing.everything(row.x), map(Row, range(3)))) == expected
assert [pool.submit(f, 1).result() for f in (pricing.slow, pricing.kind)] == [10, "int"]
print("done")
pool.shutdown()
"""
    )
    command = [str(python), "script.py"]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False, timeout=90
    )
    assert (ended.stdout, ended.stderr) == ("done\n", "")
    mixture.check(tmp_path / "mixture")
