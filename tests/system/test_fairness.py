"""A small package of one account beside a huge one of another."""

from support.books import Master, progress
from support.customer import Customer
from support.task_functions import ten_milliseconds
from support.up import Up

TASK_S, EXECUTORS, PROMISED_S = 0.01, 2, 2.0
TASKS_IN_PROMISED_TIME = int(PROMISED_S * EXECUTORS / TASK_S)


def test_ten_tasks_overtake_a_hundred_thousand_of_another_account(cluster: Up) -> None:
    assert 0 < done_meanwhile(cluster, first=100) < TASKS_IN_PROMISED_TIME


def done_meanwhile(cluster: Master, first: int) -> int:
    """Return how many tasks of a huge package are done while ten tasks of another account run.

    They come once the `first` results of the huge package have been read.
    """
    huge, small = Customer(cluster, "huge"), Customer(cluster, "small")
    with huge.pool() as many_pool, small.pool() as few_pool:
        many = many_pool.map(ten_milliseconds, range(100_000))
        assert many.package_id is not None
        for number in range(first):
            assert next(many) == number
        before = progress(cluster, huge.token, many.package_id).done
        assert list(few_pool.map(ten_milliseconds, range(10))) == list(range(10))
        after = progress(cluster, huge.token, many.package_id).done
        many.cancel()
    return after - before
