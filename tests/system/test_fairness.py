"""A small package of one account beside a huge one of another."""

from cli.operation import Up
from system.books import Customer, progress
from system.work import ten_milliseconds

TASK_S, EXECUTORS, PROMISED_S = 0.01, 2, 2.0
TASKS_IN_PROMISED_TIME = int(PROMISED_S * EXECUTORS / TASK_S)


def test_ten_tasks_overtake_a_hundred_thousand_of_another_account(cluster: Up) -> None:
    huge, small = Customer(cluster, "huge"), Customer(cluster, "small")
    with huge.pool() as many_pool, small.pool() as few_pool:
        many = many_pool.map(ten_milliseconds, range(100_000))
        assert many.package_id is not None
        for number in range(100):
            assert next(many) == number
        before = progress(cluster, huge.token, many.package_id).done
        assert list(few_pool.map(ten_milliseconds, range(10))) == list(range(10))
        after = progress(cluster, huge.token, many.package_id).done
        many.cancel()
    assert before < after < before + TASKS_IN_PROMISED_TIME
