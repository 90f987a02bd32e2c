from cloudpar_master.services.idle_workers import IdleWorkers


def test_who_came_away_empty_lately_idles() -> None:
    idle = IdleWorkers()
    idle.note("one", 0.0, idle=True)
    idle.note("two", 1.0, idle=True)
    idle.note("three", 2.0, idle=False)
    assert idle.count(2.0) == 2
    assert idle.others("one", 2.0)
    idle.note("two", 3.0, idle=False)
    assert idle.count(3.0) == 1
    assert not idle.others("one", 3.0)


def test_a_worker_that_no_longer_asks_is_forgotten() -> None:
    idle = IdleWorkers()
    idle.note("one", 0.0, idle=True)
    assert idle.count(IdleWorkers.MEMORY_S - 0.1) == 1
    assert idle.count(IdleWorkers.MEMORY_S) == 0
    assert not idle.others("two", IdleWorkers.MEMORY_S)
