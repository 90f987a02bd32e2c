"""Small maps of a function that was measured before are sent as one chunk."""

from cloudpar import Pool
from cloudpar._client.task_lengths import OWN_WHOLE_US, REMEMBERED, WHOLE_US, TaskLengths
from support.fake_master import FakeMaster


def test_the_chunk_size_of_an_unmeasured_function_is_left_to_the_master() -> None:
    lengths = TaskLengths(own_master=False)
    lengths.measured("a", 0)
    assert not lengths.are_short("a", 20)


def test_a_package_of_little_work_is_one_chunk_and_larger_ones_are_left_to_the_master() -> None:
    shared, own = TaskLengths(own_master=False), TaskLengths(own_master=True)
    for lengths, whole_us in ((shared, WHOLE_US), (own, OWN_WHOLE_US)):
        lengths.measured("a", 100)
        assert lengths.are_short("a", whole_us // 100)
        assert not lengths.are_short("a", whole_us // 100 + 1)
        lengths.measured("a", whole_us)
        assert (lengths.are_short("a", 1), lengths.are_short("a", 2)) == (True, False)


def test_the_oldest_functions_are_forgotten() -> None:
    lengths = TaskLengths(own_master=True)
    for number in range(REMEMBERED + 1):
        lengths.measured(str(number), 1)
    assert (lengths.are_short("0", 5), lengths.are_short("1", 5)) == (False, True)


def test_the_second_small_map_of_a_function_takes_one_chunk() -> None:
    with Pool("local", workers=2, progress=False) as pool:
        session = pool._client.session
        for _ in range(2):
            assert list(pool.map(abs, [-1, 2, -3] * 7)) == [1, 2, 3] * 7
        assert session.packages.last is not None
        assert session._lengths.are_short(session.packages.last.code_hash, 21)
        # A wrong guess only costs time: all results arrive.
        session._lengths.measured(session.packages.last.code_hash, 1)
        assert sum(pool.map(abs, range(-2_000, 0))) == 2_001_000


def _packages_of_a_stream(pool: Pool, master: FakeMaster, tasks: int, buffersize: int) -> list[int]:
    before = len(master.packages)
    assert sum(pool.map(abs, iter(range(tasks)), buffersize=buffersize)) == sum(range(tasks))
    return [stored.message.n for stored in list(master.packages.values())[before:]]


def test_a_stream_of_short_tasks_travels_in_half_as_many_packages(pool: Pool, master: FakeMaster) -> None:
    lengths = pool._client.session._lengths
    code_hash = _hash_of_abs(pool)
    lengths.measured(code_hash, WHOLE_US)
    assert _packages_of_a_stream(pool, master, 80, 16)[:3] == [16, 4, 4]
    lengths.measured(code_hash, 1)
    assert _packages_of_a_stream(pool, master, 80, 16)[:3] == [16, 8, 8]
    assert list(master.packages.values())[-1].message.chunksize == 8


def _hash_of_abs(pool: Pool) -> str:
    assert list(pool.map(abs, [-1])) == [1]
    last = pool._client.session.packages.last
    assert last is not None
    return last.code_hash
