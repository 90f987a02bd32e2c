from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cloudpar import Pool


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda pool: pool.map(abs, [1], bufersize=3),
            "Pool.map() got an unexpected keyword argument 'bufersize'. Did you mean 'buffersize'?",
        ),
        (
            lambda pool: pool.map_unordered(abs, [1], chunk_size=3),
            "Pool.map_unordered() got an unexpected keyword argument 'chunk_size'. Did you mean 'chunksize'?",
        ),
        (
            lambda pool: pool.starmap(pow, [(1, 2)], return_exception=True),
            "Pool.starmap() got an unexpected keyword argument 'return_exception'. Did you mean 'return_exceptions'?",
        ),
        (
            lambda pool: pool.parallel_for(0, 1, print, task_timeout=3),
            "Pool.parallel_for() got an unexpected keyword argument 'task_timeout'. Did you mean 'task_timeout_s'?",
        ),
        (
            lambda pool: pool.shutdown(cancel_future=True),
            "Pool.shutdown() got an unexpected keyword argument 'cancel_future'. Did you mean 'cancel_futures'?",
        ),
        (
            lambda pool: pool.shutdown(zzz=True),
            "Pool.shutdown() got an unexpected keyword argument 'zzz'. It takes cancel_futures, wait",
        ),
        (
            lambda _: Pool(max_worker=3),  # type: ignore[call-arg]
            "Pool() got an unexpected keyword argument 'max_worker'. Did you mean 'max_workers'?",
        ),
        (lambda pool: pool.map(), "Pool.map() missing 1 required positional argument: 'fn'"),
        (lambda pool: pool.starmap(abs), "Pool.starmap() missing 1 required positional argument: 'iterable'"),
    ],
)
def test_a_misspelt_keyword_is_refused_with_the_right_one(pool: Pool, call: Callable[[Any], object], text: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(pool)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda pool: pool.map(abs, [1], chunksize="3"), "chunksize='3': give a whole number"),
        (lambda pool: pool.map(abs, [1], timeout="3"), "timeout='3': give a number of seconds"),
        (lambda pool: pool.map(abs, [1], task_timeout_s="3"), "task_timeout_s='3': give a number of seconds"),
        (lambda pool: pool.parallel_for(0, 2.5, print), "stop=2.5: give a whole number"),
        (lambda pool: pool.attach(None), "package_id=None: give the id as text, such as results.package_id"),
        (lambda _: Pool(workers=2.5), "workers=2.5: give a whole number"),  # type: ignore[arg-type]
        (lambda _: Pool(max_workers="2"), "max_workers='2': give a whole number"),  # type: ignore[arg-type]
        (lambda _: Pool(memory_mb="4G"), "memory_mb='4G': give a whole number"),  # type: ignore[arg-type]
        (lambda _: Pool(threads_per_task="4"), "threads_per_task='4': give a whole number"),  # type: ignore[arg-type]
        (lambda _: Pool(patience_s="4"), "patience_s='4': give a number of seconds"),  # type: ignore[arg-type]
    ],
)
def test_an_argument_of_the_wrong_type_is_named(pool: Pool, call: Callable[[Any], object], text: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(pool)
    assert str(caught.value) == text


def test_numbers_of_numpy_are_numbers(pool: Pool) -> None:
    limits: Any = {
        "timeout": np.float32(60),
        "task_timeout_s": np.float32(60),
        "chunksize": np.int64(1),
        "retries": np.int64(1),
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
