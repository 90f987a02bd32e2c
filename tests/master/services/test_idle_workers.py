from cloudpar_master.ports import Fit
from cloudpar_master.ports.task_queue import ANY
from cloudpar_master.services.idle_workers import IdleWorkers
from support.packages import make_head, make_spec

HEADS = [make_head(make_spec("p"))]


def test_a_worker_that_found_the_queue_empty_lately_idles() -> None:
    idle = IdleWorkers()
    idle.note("one", 0.0, ANY, idle=True)
    idle.note("two", 1.0, ANY, idle=True)
    idle.note("three", 2.0, ANY, idle=False)
    assert idle.count(2.0) == 2
    assert idle.other("one", 2.0, HEADS)
    idle.note("two", 3.0, ANY, idle=False)
    assert idle.count(3.0) == 1
    assert not idle.other("one", 3.0, HEADS)


def test_a_worker_that_sends_no_more_retrievals_is_forgotten() -> None:
    idle = IdleWorkers()
    idle.note("one", 0.0, ANY, idle=True)
    assert idle.count(IdleWorkers.MEMORY_S - 0.1) == 1
    assert idle.count(IdleWorkers.MEMORY_S) == 0
    assert not idle.other("two", IdleWorkers.MEMORY_S, HEADS)


def test_an_idle_worker_that_cannot_run_a_package_wants_nothing_of_it() -> None:
    idle = IdleWorkers()
    idle.note("lacking", 0.0, Fit(set_aside=("p",)), idle=True)
    assert not idle.other("busy", 1.0, HEADS)
    assert idle.other("busy", 1.0, [make_head(make_spec("another"))])
