"""Task code by reference: imported by name, with data and results in MessagePack and no pickles."""

import hashlib
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack

from cloudpar_protocol.payloads import BlobData, InlineData, Link, TaskCode, TaskResult
from cloudpar_worker.executor import references
from support.leases import data_blob
from worker import tasks
from worker.scripted_master import ScriptedMaster


def run(pool: ScriptedMaster, reference: str, values: Sequence[Any] = (), **changes: Any) -> list[TaskResult]:
    """The results of a package over these values, or over range(changes["tasks"])."""
    code = TaskCode(hashlib.sha256(reference.encode()).hexdigest(), reference=reference)
    n = changes.pop("tasks", len(values))
    data = {"data": InlineData([msgpack.encode(value) for value in values])} if values else {}
    return tasks.run(pool, code, n, **({"codec": "msgpack"} | data | changes))


def value_of(result: TaskResult) -> Any:
    assert result.outcome == "ok", result
    assert result.data is not None
    return msgpack.decode(result.data)


def error_of(result: TaskResult) -> str:
    assert result.outcome == "error", result
    assert result.data is None
    assert result.message is not None
    assert result.traceback is not None
    assert result.traceback.rstrip().endswith(result.message)
    return result.message


def test_values_of_a_function_by_reference_come_back(pool: ScriptedMaster) -> None:
    assert [value_of(result) for result in run(pool, "math:factorial", tasks=20)][-3:] == [
        355687428096000, 6402373705728000, 121645100408832000,
    ]  # fmt: skip
    assert [value_of(result) for result in run(pool, "builtins:len", ["ab", b"abc", [1], {"k": 1}])] == [2, 3, 1, 1]


def test_a_function_is_called_as_the_package_says(pool: ScriptedMaster) -> None:
    (args,) = run(pool, "builtins:divmod", [[17, 5]], call="args")
    (both,) = run(pool, "builtins:sorted", [[[[3, 1, 2]], {"reverse": True}]], call="args_kwargs")
    (method,) = run(pool, "collections:OrderedDict.fromkeys", [["b", "a"]])
    assert value_of(args) == [3, 2]
    assert value_of(both) == [3, 2, 1]
    assert value_of(method) == {"b": None, "a": None}


def test_g20_bytes_that_could_be_read_as_a_pickle_are_no_value_of_a_reference(pool: ScriptedMaster) -> None:
    empty, shown, hidden = run(pool, "msgspec:Raw", [msgpack.encode({}), msgpack.encode("text"), pickle.dumps(None)])
    assert (value_of(empty), value_of(shown)) == ({}, "text")
    assert (hidden.outcome, hidden.data) == ("unpicklable", None)
    assert "could be read as a pickle" in (hidden.message or "")


def test_a_reference_runs_on_any_version_of_python(pool: ScriptedMaster) -> None:
    assert value_of(run(pool, "builtins:abs", [-1], python="2.7")[0]) == 1
    assert value_of(run(pool, "builtins:abs", [-2], python="")[0]) == 2


def test_a_result_that_messagepack_does_not_hold_says_what_to_do(pool: ScriptedMaster) -> None:
    for reference, values, name in (
        ("threading:Lock", [], "_thread.lock"),
        ("builtins:pow", [2, 64], "builtins.int"),
        ("builtins:complex", [1, 2], "builtins.complex"),
    ):
        (result,) = run(pool, reference, [values], call="args")
        assert result.outcome == "unpicklable"
        assert f"the result, of type {name}, is not what MessagePack holds" in (result.message or "")
        assert "return None, booleans, numbers" in (result.message or "")


def test_with_messagepack_an_exception_travels_as_text(pool: ScriptedMaster) -> None:
    refused, fine = run(pool, "builtins:int", ["x", "4"])
    assert error_of(refused) == "ValueError: invalid literal for int() with base 10: 'x'"
    assert value_of(fine) == 4


def test_data_that_is_no_messagepack_is_an_error_of_its_task(pool: ScriptedMaster) -> None:
    broken = InlineData([b"\xc1", msgpack.encode(-3)])
    wrong, right = run(pool, "builtins:abs", tasks=2, data=broken)
    assert "DecodeError" in error_of(wrong)
    assert value_of(right) == 3


def test_a_missing_module_of_a_reference_is_named_with_what_to_do(pool: ScriptedMaster) -> None:
    for result in run(pool, "only_at_the_client.numbers:work", tasks=2):
        message = error_of(result)
        assert "has no module 'only_at_the_client'" in message
        assert (
            "install the package that holds it at the worker, or put its folder on the worker's PYTHONPATH" in message
        )


def test_a_missing_function_of_a_reference_is_named_with_its_module(pool: ScriptedMaster) -> None:
    message = error_of(run(pool, "json.decoder:nothing_like_this", tasks=1)[0])
    assert "has no 'nothing_like_this': correct the reference 'json.decoder:nothing_like_this'" in message
    assert "or restart the worker, if the file has changed since it started" in message
    assert "decoder.py" in message
    assert "not callable" in error_of(run(pool, "math:pi", tasks=1)[0])


def test_data_in_a_blob_is_downloaded_when_the_code_is_a_reference(pool: ScriptedMaster) -> None:
    values = [b"x" * size for size in (70_000, 80_000)]
    body, blob = data_blob(values, "data/references", dumps=msgpack.encode)
    pool.blobs[blob.key] = body
    link = Link("GET", f"{pool.endpoint}/blob/{blob.key}")
    results = run(pool, "builtins:len", tasks=2, data=BlobData(blob), data_link=link)
    assert [value_of(result) for result in results] == [70_000, 80_000]


def test_a_module_that_fails_when_it_is_imported_shows_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fails_at_import.py").write_text("def setup():\n    raise KeyError('HOME')\nsetup()\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyError) as caught:
        references.find("fails_at_import:work")
    (note,) = caught.value.__notes__
    assert "in setup" in note
    assert "fails_at_import" not in sys.modules


def test_a_module_that_needs_another_names_that_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needs_another.py").write_text("import not_here_either\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match=r"no module 'not_here_either'.*'needs_another:work' needs") as caught:
        references.find("needs_another:work")
    assert caught.value.name == "not_here_either"
