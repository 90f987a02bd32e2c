"""Results: one for each task, at one position, the same whenever a client reads it; and none is missing at the end."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from histories.books import WHOLE, Books, Package, Read, Result, Violation, numbers
from histories.history import Call


def one_result_a_task(books: Books) -> Iterator[Violation]:
    """Every read of a task brings the same result, with an index of the package."""
    for package in books.packages:
        first: dict[int, tuple[Read, Result]] = {}
        for read in package.kept:
            for result in read.status.results:
                if not 0 <= result.index < package.n:
                    text = f"package {package.id} has no task {result.index}"
                    yield Violation("one result a task", text, (package.starts[0], read.call))
                earlier, same = first.setdefault(result.index, (read, result))
                if same != result:
                    text = f"task {result.index} of package {package.id} has two results"
                    yield Violation("one result a task", text, (earlier.call, read.call))


def right_value(books: Books) -> Iterator[Violation]:
    """A result is that of its own task."""
    for package in books.packages:
        for read in package.kept:
            for result in read.status.results:
                known = 0 <= result.index < package.n
                if known and result.outcome == "ok" and result.data != books.value(package.request, result.index):
                    text = f"task {result.index} of package {package.id} has the value {result.data!r}"
                    yield Violation("right value", text, (read.call,))


def cursors_rise(books: Books) -> Iterator[Violation]:
    for package in books.packages:
        for read in package.kept:
            if read.status.cursor < read.after:
                text = f"the cursor of package {package.id} went from {read.after} back to {read.status.cursor}"
                yield Violation("cursors rise", text, (read.call,))


def one_position_a_result(books: Books) -> Iterator[Violation]:
    """Each result has one position: a read has it if, and only if, the position is between the read's cursors.

    This fails if a result is repeated after its position, appears before it, or is left out of a read.
    """
    for package in books.packages:
        yield from (_misplaced(package, index, reads) for index, reads in _readers(package).items()
                    if not _positions(package, index, reads))  # fmt: skip
        for read in package.kept:
            indexes = [result.index for result in read.status.results]
            if len(set(indexes)) < len(indexes):
                text = f"a reply repeats results of package {package.id}"
                yield Violation("one position a result", text, (read.call,))


def _readers(package: Package) -> dict[int, list[Read]]:
    """Return the reads that brought each result."""
    found: dict[int, list[Read]] = defaultdict(list)
    for read in package.kept:
        for index in {result.index for result in read.status.results}:
            found[index].append(read)
    return found


def _positions(package: Package, index: int, reads: Sequence[Read]) -> set[int]:
    """Return the positions that a result can have, at the precision of the cursors that clients received."""
    ends = sorted({read.status.cursor for read in package.kept})
    low, high = max(read.after for read in reads), min(read.status.cursor for read in reads)
    possible = {end for end in ends if low < end <= high}
    for read in package.kept:
        if read not in reads:
            possible -= {end for end in possible if read.after < end <= read.status.cursor}
    return possible


def _misplaced(package: Package, index: int, reads: Sequence[Read]) -> Violation:
    low, high = max(read.after for read in reads), min(read.status.cursor for read in reads)
    without = [
        read for read in package.kept if read not in reads and read.after < high and low < read.status.cursor
    ]  # fmt: skip
    text = f"task {index} of package {package.id} is read after {low} and up to {high}, but not by every such read"
    shown = (max(reads, key=lambda read: read.after), min(reads, key=lambda read: read.status.cursor), *without[:2])
    return Violation("one position a result", text, tuple(read.call for read in shown))


def one_order(books: Books) -> Iterator[Violation]:
    """All reads bring the results of a package in the same order."""
    for package in books.packages:
        order: TopologicalSorter[int] = TopologicalSorter()
        for read in package.kept:
            for before, after in zip(read.status.results, read.status.results[1:], strict=False):
                order.add(after.index, before.index)
        try:
            order.prepare()
        except CycleError as error:
            around = set(error.args[1])
            calls = [read.call for read in package.kept if around & {each.index for each in read.status.results}]
            yield Violation("one order", f"tasks of package {package.id} change places", tuple(calls[:3]))


def seen_up_to(package: Package, cursor: int) -> dict[int, Result] | None:
    """Return the results at positions up to a cursor; None if the clients did not read all of these positions."""
    reached, found = 0, {}
    for read in sorted(package.kept, key=lambda read: read.after):
        if read.after > reached:
            break  # nothing covers what is between
        if read.status.cursor <= cursor:
            reached = max(reached, read.status.cursor)
            found.update({result.index: result for result in read.status.results})
    return found if reached >= cursor else None


def none_missing(books: Books) -> Iterator[Violation]:
    """A package that completed has a result, or a cancellation, for each task, and its counters say so."""
    for package in books.packages:
        for read in package.ends():
            status, found = read.status, seen_up_to(package, read.status.cursor)
            if found is None or status.state not in WHOLE:
                continue
            cancelled = numbers(status.cancelled)
            missing = set(range(package.n)) - set(found) - cancelled
            if missing:
                yield Violation("none missing", f"package {package.id} lacks {sorted(missing)[:10]}", (read.call,))
            bad = {index for index, result in found.items() if result.outcome != "ok"}
            if (status.state == "completed") != (not bad):
                text = f"package {package.id} is {status.state} with {len(bad)} errors"
                yield Violation("none missing", text, (read.call,))
            if (status.progress.done, status.progress.errors) != (package.n, len(bad)):
                yield Violation("none missing", f"the counters of package {package.id} differ", (read.call,))
            if len(status.failed) < 100 and numbers(status.failed) != bad:
                yield Violation("none missing", f"`failed` of package {package.id} differs", (read.call,))
            break  # later ends have the same results, as other rules check


def nothing_after_the_end(books: Books) -> Iterator[Violation]:
    """No result is committed after the end."""
    for package in books.packages:
        end = min(package.ends(), key=lambda read: read.status.cursor, default=None)
        final = None if end is None else seen_up_to(package, end.status.cursor)
        for read in package.kept:
            late = {result.index for result in read.status.results} - set(final or [])
            if end is not None and final is not None and late:
                text = f"package {package.id} has results of {sorted(late)[:10]} after its end"
                yield Violation("nothing after the end", text, (end.call, read.call))


def everything_ends(books: Books) -> Iterator[Violation]:
    """In a history that goes on until all packages have ended, each is read to its end, or acknowledged."""
    for package in books.packages if books.complete else []:
        if not package.effective_acknowledgements() and not any(read.status.settled for read in package.ends()):
            yield Violation("everything ends", f"package {package.id} did not end", (package.starts[0],))


def progress_counts_results(books: Books) -> Iterator[Violation]:
    """A status counts at least the results that it and the reads before it brought."""
    for package in books.packages:
        for read in package.kept:
            found = seen_up_to(package, read.status.cursor)
            if found is not None and read.status.progress.done < len(found):
                text = f"{len(found)} results of package {package.id} were read"
                yield Violation("progress counts results", text, (read.call,))


def cancelled_tasks_have_no_result(books: Books) -> Iterator[Violation]:
    """A task is cancelled only if a client requested it, and then it has no result."""
    for package in books.packages:
        have = set(_readers(package))
        for call, cancelled in _cancelled(package):
            requests = [each for each in package.effective_cancels() if not call.before(each)]
            bounded = all(each.request.get("ranges") is not None for each in requests)
            wanted = {index for each in requests for index in numbers(each.request.get("ranges") or [])}
            if bounded and not cancelled <= wanted and not package.effective_acknowledgements():
                text = f"tasks of package {package.id} were cancelled without a request"
                yield Violation("cancelled tasks have no result", text, (call,))
            if cancelled & have:
                text = f"package {package.id} has results of {sorted(cancelled & have)[:10]}"
                yield Violation("cancelled tasks have no result", text, (call,))


def _cancelled(package: Package) -> Iterator[tuple[Call, set[int]]]:
    for read in package.kept:
        yield read.call, numbers(read.status.cancelled)
    for call in package.cancels:
        if call.ok:
            yield call, numbers(call.reply.get("cancelled", []))


RULES = [
    one_result_a_task, right_value, cursors_rise, one_position_a_result, one_order, none_missing, nothing_after_the_end,
    everything_ends, progress_counts_results, cancelled_tasks_have_no_result,
]  # fmt: skip
