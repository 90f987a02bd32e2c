"""Which chunks go by the express queue: the fold that cuts a chunk decides it."""

from cloudpar_master.core.events import GaveBack
from cloudpar_master.core.head import Head
from master.core.folds import published, running, spans, then


def express(head: Head) -> list[tuple[int, int]]:
    return spans([chunk for chunk in head.tasks.open if chunk.express])


def test_chunks_that_start_with_one_of_the_first_four_tasks_are_express() -> None:
    head = running(tasks=100, chunksize=3)
    assert (express(head), spans(head.tasks.open)) == ([(0, 3), (3, 6)], [(0, 3), (3, 6), (6, 9), (9, 12)])
    assert express(running(tasks=100, chunksize=4)) == [(0, 4)]


def test_a_chunk_keeps_its_queue_when_the_rest_of_its_package_fits_into_one_chunk() -> None:
    head = running(tasks=12, chunksize=3)
    assert express(head) == [(0, 3), (3, 6)]
    head = then(head, published(head.version, range(7), duration_us=10))
    assert (express(head), spans(head.tasks.open)) == ([], [(7, 9), (9, 12)])


def test_chunks_that_are_cut_when_the_rest_fits_into_one_chunk_are_express() -> None:
    head = running(tasks=15, chunksize=3)
    head = then(head, published(head.version, range(12), duration_us=10))
    assert express(head) == spans(head.tasks.open) == [(12, 15)]


def test_a_chunk_with_which_workers_were_lost_is_not_express() -> None:
    for losses, queues in ((0, [(0, 3)]), (1, [])):
        head = running(tasks=3, chunksize=3)
        assert express(then(head, GaveBack(generation=head.version, ranges=[(0, 3)], losses=losses))) == queues
