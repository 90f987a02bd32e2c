"""Which functions an executor keeps, and what its agent knows of them."""

import pickle

from cloudpar_worker.executor.code_cache import CACHED_BYTES, CACHED_FUNCTIONS, CodeCache
from cloudpar_worker.executor.functions import FunctionCache


def test_the_number_of_cached_functions_is_limited() -> None:
    cache = CodeCache()
    dropped = [cache.use(str(number), 100) for number in range(CACHED_FUNCTIONS + 2)]
    assert dropped == [{}] * CACHED_FUNCTIONS + [{"0": 100}, {"1": 100}]


def test_the_bytes_of_cached_functions_are_limited() -> None:
    cache = CodeCache()
    size = CACHED_BYTES // 2
    assert [cache.use(name, size) for name in "abac"] == [{}, {}, {}, {"b": size}]
    assert ["a" in cache, "b" in cache, "c" in cache] == [True, False, True]


def test_a_function_larger_than_the_limit_is_kept_alone() -> None:
    cache = CodeCache()
    cache.use("small", 100)
    assert cache.use("large", 2 * CACHED_BYTES) == {"small": 100}
    assert cache.use("large", 2 * CACHED_BYTES) == {}
    assert cache.use("next", 100) == {"large": 2 * CACHED_BYTES}


def test_a_dropped_function_is_not_kept_in_memory() -> None:
    functions = FunctionCache()
    for number in range(CACHED_FUNCTIONS + 1):
        functions.take(str(number), pickle.dumps(abs))
        assert functions.load(str(number), "pickle") is abs
    assert set(functions._entries) == {str(number) for number in range(1, CACHED_FUNCTIONS + 1)}


def test_the_code_of_a_run_that_was_recalled_whole_is_kept_for_the_next() -> None:
    functions = FunctionCache()
    functions.take("hash", pickle.dumps(abs))  # none of its tasks ran
    functions.take("hash", None)
    assert functions.load("hash", "pickle") is abs
