from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cloudpar import Pool
from cloudpar.errors import ConfigurationError, TooLarge
from support.fake_master import FakeMaster

NUMBERS = ["x", "", b"3", [], {}, object(), float("nan"), float("inf"), True, 10**30]
"""Values that no argument accepts as a number."""

OF_POOL = {
    "endpoint": "text",
    "token": "text",
    "workers": "a whole number",
    "max_workers": "a whole number",
    "memory_mb": "a whole number",
    "threads_per_task": "a whole number",
    "patience_s": "0 or more seconds",
    "task_timeout_s": "a positive number of seconds",
    "retries": "a whole number from 0 to 100",
    "retry_on": "a class derived from Exception",
    "output": '"print", None, or a function',
    "progress": "True, False or None",
}
"""What each argument of a pool takes, as its error says."""

OF_MAP = {
    "timeout": "a number of seconds",
    "chunksize": "a whole number",
    "buffersize": "an integer or None",
    "task_timeout_s": "a positive number of seconds",
    "retries": "a whole number from 0 to 100",
    "retry_on": "a class derived from Exception",
    "return_exceptions": "True or False",
}


@pytest.mark.parametrize(
    ("method", "arguments", "key", "advice"),
    [
        ("map", (abs, [1]), "bufersize", ". Did you mean 'buffersize'?"),
        ("map_unordered", (abs, [1]), "chunk_size", ". Did you mean 'chunksize'?"),
        ("starmap", (pow, [(1, 2)]), "return_exception", ". Did you mean 'return_exceptions'?"),
        ("parallel_for", (0, 1, print), "task_timeout", ". Did you mean 'task_timeout_s'?"),
        ("shutdown", (), "cancel_future", ". Did you mean 'cancel_futures'?"),
        ("shutdown", (), "zzz", ". It takes cancel_futures, wait"),
        ("map", (abs, [1]), "zzz", f". It takes {', '.join(sorted(OF_MAP))}"),
        ("map", (abs, [1]), "progress", ": it is an argument of the pool itself, Pool(progress=...)"),
        ("parallel_for", (0, 1, print), "output", ": it is an argument of the pool itself, Pool(output=...)"),
        ("starmap", (pow, [(1, 2)]), "workers", ": it is an argument of the pool itself, Pool(workers=...)"),
    ],
)
def test_a_misspelt_keyword_is_refused_with_the_right_one(
    pool: Pool, method: str, arguments: tuple[Any, ...], key: str, advice: str
) -> None:
    with pytest.raises(TypeError) as caught:
        getattr(pool, method)(*arguments, **{key: 3})
    assert str(caught.value) == f"Pool.{method}() got an unexpected keyword argument {key!r}{advice}"


def test_errors_of_a_call_name_it_as_users_write_it(pool: Any) -> None:
    with pytest.raises(TypeError, match=r"^Pool\(\) got an unexpected .* 'max_worker'. Did you mean 'max_workers'\?$"):
        Pool(max_worker=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Pool\.map\(\) missing 1 required positional argument: 'fn'$"):
        pool.map()
    with pytest.raises(TypeError, match=r"^Pool\.starmap\(\) missing 1 required positional argument: 'iterable'$"):
        pool.starmap(abs)


@pytest.mark.parametrize("name", sorted(OF_POOL))
def test_an_argument_of_a_pool_of_another_type_is_refused_before_anything_starts(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloudpar.pool.Lifetime", None)
    wrong = [each for each in NUMBERS if not (_is_flag(name, each) or _is_text(name, each) or _is_endless(name, each))]
    for value in [*wrong, *([-1, None] if name == "patience_s" else [])]:
        arguments: dict[str, Any] = {name: value}
        with pytest.raises((TypeError, ValueError)) as caught:
            Pool(**arguments)
        said = str(caught.value)
        assert said.startswith((f"{name}=", "1,000,000,000,000,000,000,000,000,000,000 executors")), said
        assert OF_POOL[name] in said or value == 10**30, said


def _is_flag(name: str, value: object) -> bool:
    return name == "progress" and value is True


def _is_text(name: str, value: object) -> bool:
    return name in {"endpoint", "token"} and isinstance(value, str)


def _is_endless(name: str, value: object) -> bool:
    return name == "patience_s" and value == float("inf")


@pytest.mark.parametrize("name", ["endpoint", "token"])
def test_an_empty_endpoint_or_token_does_not_start_a_pool_on_this_machine(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloudpar.pool.Lifetime", None)
    arguments: dict[str, Any] = {name: ""}
    with pytest.raises(ConfigurationError, match=f"^{name}= is given an empty text"):
        Pool(**arguments)


def test_the_error_of_a_token_of_another_type_does_not_show_it() -> None:
    with pytest.raises(TypeError, match=r"^token= is of type bytes: give text, or None$"):
        Pool("http://127.0.0.1:1", b"secret")  # type: ignore[arg-type]


def test_a_number_of_executors_in_the_place_of_the_endpoint_or_the_token_is_refused_with_the_right_argument() -> None:
    with pytest.raises(TypeError, match=r"4 is no endpoint: .* write Pool\(workers=4\)$"):
        Pool(4)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"123 is no endpoint: .* write Pool\(workers=123\)$"):
        Pool(123, "token")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^token= is of type int: .*workers= takes a number of executors$"):
        Pool("local", 4)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["map", "map_unordered", "starmap"])
@pytest.mark.parametrize("name", sorted(OF_MAP))
def test_an_argument_of_a_map_of_another_type_is_refused_at_the_call(pool: Pool, method: str, name: str) -> None:
    for value in NUMBERS:
        if name == "return_exceptions" and value is True:
            continue
        arguments: dict[str, Any] = {name: value, **({"retries": 1} if name == "retry_on" else {})}
        with pytest.raises((TypeError, ValueError)) as caught:
            getattr(pool, method)(abs, [(1,)], **arguments)
        said = str(caught.value)
        assert said.startswith(f"{name}="), said
        assert OF_MAP[name] in said, said


@pytest.mark.parametrize("name", ["start", "stop", "task_timeout_s"])
def test_an_argument_of_parallel_for_of_another_type_is_refused(pool: Pool, name: str) -> None:
    for value in [*NUMBERS, *([None] if name != "task_timeout_s" else [])]:
        arguments: dict[str, Any] = {"start": 0, "stop": 1, "body": print} | {name: value}
        with pytest.raises((TypeError, ValueError), match=f"^{name}=.*: give a (whole|positive) number"):
            pool.parallel_for(**arguments)


def test_a_timeout_of_another_type_is_refused_by_futures_and_attachments(pool: Pool, master: FakeMaster) -> None:
    future = pool.submit(abs, -1)
    attachment: Any = pool.attach(future.package_id or "")
    reads: list[Callable[..., object]] = [future.result, future.exception, attachment.results, attachment.outcomes]
    for read in reads:
        for value in NUMBERS:
            with pytest.raises((TypeError, ValueError), match=r"^timeout=.*: give a number of seconds, or None"):
                read(timeout=value)
    assert future.result() == 1
    master.end_all()


@pytest.mark.parametrize("name", ["wait", "cancel_futures"])
def test_a_flag_of_shutdown_of_another_type_is_refused_and_the_pool_goes_on(pool: Pool, name: str) -> None:
    arguments: dict[str, Any] = {name: "no"}
    with pytest.raises(TypeError, match=f"^{name}='no': give True or False$"):
        pool.shutdown(**arguments)
    assert pool.submit(abs, -1).result() == 1


@pytest.mark.parametrize("values", [None, 3, lambda: [1], list, np.array(3)])
def test_values_of_a_map_that_are_no_iterable_are_refused_with_their_place(pool: Pool, values: Any) -> None:
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: pool.map(abs, values), r"Pool\.map\(\) .* number 1 of them"),
        (lambda: pool.map(pow, [1], values, buffersize=2), r"Pool\.map\(\) .* number 2 of them"),
        (lambda: pool.map_unordered(pow, [1], values), r"Pool\.map_unordered\(\) .* number 2 of them"),
        (lambda: pool.starmap(pow, values), r"Pool\.starmap\(\) .* number 1 of them"),
    ]
    for call, text in calls:
        with pytest.raises(TypeError, match=f"^{text}, .*: give a list, a range or another iterable"):
            call()


def test_a_range_longer_than_any_list_is_too_large(pool: Pool) -> None:
    for call in (lambda: pool.map(abs, range(10**30)), lambda: pool.parallel_for(0, 2**63 - 1, print)):
        with pytest.raises(TooLarge, match="give buffersize="):
            call()
    assert next(pool.map(abs, range(10**30), buffersize=2)) == 0


def test_attach_refuses_an_id_that_is_no_text(pool: Pool) -> None:
    for value in (None, b"x", 3):
        with pytest.raises(TypeError, match=r"^package_id=.*: give the id as text, such as results.package_id$"):
            pool.attach(value)  # type: ignore[arg-type]


def test_a_negative_timeout_is_a_deadline_in_the_past(pool: Pool) -> None:
    with pytest.raises(TimeoutError):
        next(pool.map(abs, [1], timeout=-1))


def test_numpy_numbers_are_accepted_as_arguments(pool: Pool) -> None:
    limits: Any = {
        "timeout": np.float32(60),
        "task_timeout_s": np.float32(60),
        "chunksize": np.int64(1),
        "retries": np.int64(1),
        "buffersize": np.int64(2),
        "return_exceptions": np.bool_(False),
    }
    assert list(pool.map(abs, [-1, -2], **limits)) == [1, 2]
    sums = [0, 0]

    def body(i: int) -> None:
        sums[i] = i + 1

    pool.parallel_for(np.int64(0), np.int64(2), body)  # type: ignore[arg-type]
    assert sums == [1, 2]
    settings: Any = {"workers": np.int64(1), "patience_s": np.float32(60), "threads_per_task": np.int64(1)}
    with Pool(**settings) as other:
        assert other.submit(abs, -1).result() == 1
