"""Features beyond concurrent.futures: side effects, output, progress, reports, forks, Ctrl-C."""

import io
import multiprocessing
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cloudpar import Pool, errors
from cloudpar._arguments.pool_options import Output
from cloudpar.effects import SideEffectError
from cloudpar.errors import ConfigurationError, InvalidToken, SerializationError
from cloudpar_protocol.payloads import TaskResult
from support.fake_master import TOKEN, FakeMaster


def test_parallel_for_copies_writes_back(any_pool: Pool) -> None:
    squares, names = [0] * 10, {}

    def body(i: int) -> None:
        squares[i] = i * i
        names[i] = str(i)

    any_pool.parallel_for(2, 7, body)
    assert squares == [0, 0, 4, 9, 16, 25, 36, 0, 0, 0]
    assert names == {i: str(i) for i in range(2, 7)}
    any_pool.parallel_for(5, 5, body)


def test_parallel_for_changes_nothing_on_an_error(any_pool: Pool) -> None:
    squares = [0] * 4

    def body(i: int) -> None:
        squares[i] = 1 // (3 - i)

    with pytest.raises(ZeroDivisionError):
        any_pool.parallel_for(0, 4, body)
    assert squares == [0] * 4


def test_parallel_for_names_a_conflict(any_pool: Pool) -> None:
    last = [0]

    def body(i: int) -> None:
        last[0] = i + 1

    with pytest.raises(SideEffectError, match=r"last\[0\]"):
        any_pool.parallel_for(0, 3, body)
    assert last == [0]


def test_parallel_for_travels_under_the_bodys_name(pool: Pool, master: FakeMaster) -> None:
    def fill(_: int) -> None:
        """Do nothing."""

    pool.parallel_for(0, 1, fill)
    assert master.packages["p0"].message.name.endswith("fill")


def test_an_unknown_token_is_refused(master: FakeMaster) -> None:
    with pytest.raises(InvalidToken, match="this token is unknown"):
        Pool(master.endpoint, "wrong")


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"endpoint": "http://x"}, ConfigurationError, "no token"),
        ({"endpoint": "http://x:port", "token": "x"}, ConfigurationError, "is not a URL of a master"),
        ({"workers": 0}, ValueError, "workers must be greater than 0"),
        ({"max_workers": 0}, ValueError, "max_workers must be greater than 0"),
        ({"max_workers": -1}, ValueError, "max_workers must be greater than 0"),
        ({"workers": 2, "max_workers": 2}, ValueError, "give one of them"),
        ({"max_workers": 1, "endpoint": "http://x", "token": "x"}, ValueError, "workers= is for a pool on this mach"),
        ({"workers": 1, "endpoint": "http://x", "token": "x"}, ValueError, "workers= is for a pool on this machine"),
        ({"task_timeout_s": 0.0}, ValueError, "positive number of seconds"),
        ({"endpoint": "http://x", "token": "x", "output": "file"}, TypeError, "output='file'"),
    ],
)
def test_contradicting_arguments_are_refused(
    arguments: dict[str, Any], error: type[Exception], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nowhere")
    with pytest.raises(error, match=text):
        Pool(**arguments)


@pytest.fixture
def configured(master: FakeMaster, monkeypatch: pytest.MonkeyPatch) -> FakeMaster:
    """A master that the environment variables name."""
    monkeypatch.setenv("CLOUDPAR_ENDPOINT", master.endpoint)
    monkeypatch.setenv("CLOUDPAR_TOKEN", TOKEN)
    return master


def test_endpoint_and_token_are_taken_from_the_environment(configured: FakeMaster) -> None:
    with Pool() as pool:
        assert pool.endpoint == configured.endpoint
        assert pool.submit(abs, -1).result() == 1


def test_workers_is_ignored_with_a_warning_if_a_master_is_configured(
    configured: FakeMaster, caplog: pytest.LogCaptureFixture
) -> None:
    with Pool(workers=2) as pool:
        assert pool.endpoint == configured.endpoint
    (said,) = caplog.messages
    assert "workers=2 is ignored" in said
    assert "the environment variables CLOUDPAR_ENDPOINT" in said
    assert 'Pool("local", workers=2)' in said


def test_the_endpoint_local_starts_a_pool_on_this_machine_despite_a_configured_master(configured: FakeMaster) -> None:
    with Pool("local", workers=1) as pool:
        assert pool.endpoint != configured.endpoint
        assert pool.submit(abs, -1).result() == 1


def test_max_workers_is_another_name_for_workers(configured: FakeMaster, caplog: pytest.LogCaptureFixture) -> None:
    with Pool(max_workers=3):
        assert 'Pool("local", workers=3)' in caplog.text
    with Pool("local", max_workers=3) as pool:
        assert "of 3 executors on this machine" in repr(pool)


def test_a_library_that_feeds_an_executor_keeps_many_tasks_submitted(pool: Pool) -> None:
    """Dask submits tasks until `_max_workers` of them are under way; a small number means one request per task."""
    assert pool._max_workers >= 1000


def printing(master: FakeMaster, output: Output) -> None:
    master.automatic = False
    with Pool(master.endpoint, TOKEN, output=output) as pool:
        results = pool.map(abs, [-1, -2])
        master.publish(
            "p0",
            [
                TaskResult(0, "ok", 1, data=pickle.dumps(1), stdout="one\ntwo\n"),
                TaskResult(1, "ok", 1, data=pickle.dumps(2), stdout="three", stderr="wrong\n"),
            ],
        )
        assert list(results) == [1, 2]


def test_output_is_printed_with_the_index(master: FakeMaster, capsys: pytest.CaptureFixture[str]) -> None:
    printing(master, "print")
    printed = capsys.readouterr()
    assert printed.out == "[0] one\n[0] two\n[1] three\n"
    assert printed.err == "[1] wrong\n"


def test_output_may_be_dropped(master: FakeMaster, capsys: pytest.CaptureFixture[str]) -> None:
    printing(master, None)
    assert capsys.readouterr().out == ""


def test_output_may_go_to_a_function(master: FakeMaster) -> None:
    calls: list[tuple[int, str, str]] = []
    printing(master, lambda index, out, err: calls.append((index, out, err)))
    assert calls == [(0, "one\ntwo\n", ""), (1, "three", "wrong\n")]


def test_a_failing_output_function_costs_no_results(master: FakeMaster, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    printing(master, broken)
    assert "the function given as output= failed" in caplog.text


def test_the_report_has_six_points(pool: Pool) -> None:
    assert pool.last_report is None
    assert list(pool.map(abs, [-1, -2, -3])) == [1, 2, 3]
    report = pool.last_report
    assert report is not None
    assert (report.tasks, report.errors, report.executors, report.charged_s) == (3, 0, 1, 0.003)
    assert (report.retrieve_s, report.execute_s, report.publish_s) == (1e-05, 0.003, 2e-05)
    assert min(report.serialize_s, report.deserialize_s, report.await_s) > 0
    assert report.points_s() == (
        report.serialize_s, report.retrieve_s, report.execute_s,
        report.publish_s, report.deserialize_s, report.await_s,
    )  # fmt: skip


def test_progress_true_shows_a_bar(master: FakeMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    master.page_tasks = 1
    with Pool(master.endpoint, TOKEN, progress=True) as pool:
        assert list(pool.map(abs, range(4))) == [0, 1, 2, 3]
    assert "abs: 4 of 4, 0 errors, " in stream.getvalue()
    assert "0 errors, 1 executor" in stream.getvalue()


def test_progress_is_not_shown_outside_of_terminals_and_notebooks(
    master: FakeMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr("cloudpar._display.progress.AFTER_S", 0.0)
    with Pool(master.endpoint, TOKEN) as pool:
        assert list(pool.map(abs, range(4))) == [0, 1, 2, 3]
    assert stream.getvalue() == ""


def use_in_child(pool: Pool, answers: Any) -> None:
    try:
        pool.submit(abs, 1)
    except RuntimeError as error:
        answers.send(str(error))
    pool.shutdown()


def test_a_forked_child_cannot_use_the_pool(pool: Pool) -> None:
    assert pool.submit(abs, -1).result() == 1
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=use_in_child, args=(pool, theirs))
    child.start()
    assert "make a Pool in the child" in ours.recv()
    child.join()
    assert child.exitcode == 0
    assert pool.submit(abs, -2).result() == 2


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """Press Ctrl-C for this thread, from another thread.

    A signal that arrives just before a thread starts to wait does not end the wait. So it is followed by signals that
    only wake the thread.
    """
    main, over = threading.get_ident(), threading.Event()
    before = signal.signal(signal.SIGURG, lambda *_: None)

    def press() -> None:
        signal.pthread_kill(main, signal.SIGINT)
        while not over.wait(0.05):
            signal.pthread_kill(main, signal.SIGURG)

    yield lambda: threading.Thread(target=press, daemon=True).start()
    over.set()
    signal.signal(signal.SIGURG, before)


@pytest.mark.parametrize("wait", ["next", "result", "for"])
def test_ctrl_c_cancels_and_prints_the_charge(
    master: FakeMaster, wait: str, ctrl_c: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    master.automatic = False

    def interrupt() -> None:
        master.wait_for(lambda: master.packages and master.seen["await_tasks"])
        if wait == "next":
            master.run("p0", range(1))
        ctrl_c()

    thread = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt), Pool(master.endpoint, TOKEN) as pool:  # noqa: PT012 - the block's end is what raises, or is tested
        thread.start()
        if wait == "next":
            list(pool.map(abs, [-1, -2]))
        elif wait == "result":
            pool.submit(abs, -1).result()
        else:
            pool.parallel_for(0, 2, lambda _: None)
    thread.join()
    assert master.packages["p0"].state == "cancelled"
    charged = "0.001" if wait == "next" else "0.000"
    assert f"cloudpar: cancelled package p0; {charged} s of execution time were charged" in capsys.readouterr().err


def test_ctrl_c_while_a_package_starts_cancels_it(
    master: FakeMaster, ctrl_c: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    master.automatic = False
    master.faults["start_tasks"] = deque(["mute"])

    def interrupt() -> None:
        master.wait_for(lambda: master.packages)
        ctrl_c()

    thread = threading.Thread(target=interrupt)
    with Pool(master.endpoint, TOKEN) as pool:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            pool.map(abs, [-1, -2])
    thread.join()
    assert master.packages["p0"].state == "cancelled"
    assert "cloudpar: cancelled package p0;" in capsys.readouterr().err


def test_ctrl_c_around_a_pool_cancels_everything(master: FakeMaster, capsys: pytest.CaptureFixture[str]) -> None:
    master.automatic = False
    with pytest.raises(KeyboardInterrupt), Pool(master.endpoint, TOKEN) as pool:  # noqa: PT012 - the block's end is what raises, or is tested
        pool.map(abs, [-1])
        pool.submit(abs, -1)
        master.wait_for(lambda: len(master.packages) == 2)
        raise KeyboardInterrupt
    assert "cloudpar: cancelled" in capsys.readouterr().err
    assert {stored.state for stored in master.packages.values()} == {"cancelled"}


EXIT = """
import sys, threading
sys.path.insert(0, {tests!r})
from cloudpar import Pool
pool = Pool({endpoint!r}, {token!r})
pool.submit(bytes, 5000).add_done_callback(lambda future: print(len(future.result())))
"""


def test_the_interpreters_exit_waits_for_what_was_submitted(master: FakeMaster) -> None:
    script = EXIT.format(tests=os.path.dirname(__file__), endpoint=master.endpoint, token=TOKEN)  # noqa: PTH120 - the text goes into a script
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "5000\n", "")


def test_import_cloudpar_imports_little() -> None:
    """HTTP, pickling and processes are imported with the first pool."""
    script = "import sys, cloudpar; print([name for name in sys.modules if name in %r])"
    heavy = ["urllib3", "msgspec", "cloudpickle", "concurrent.futures", "subprocess", "ssl", "numpy"]
    heavy += ["click", "rich", "matplotlib"]
    done = subprocess.run([sys.executable, "-c", script % heavy], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_public_names_exist_and_others_do_not() -> None:
    import cloudpar

    assert set(cloudpar.__all__) <= set(dir(cloudpar))
    for name in cloudpar.__all__:
        assert getattr(cloudpar, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'pol'"):
        cloudpar.pol  # noqa: B018 - looking up the name is what raises
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), Exception)


NAMES_OF_MULTIPROCESSING = (
    "imap", "imap_unordered", "apply", "apply_async", "map_async", "starmap_async", "close", "join", "terminate",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES_OF_MULTIPROCESSING)
def test_a_method_that_only_multiprocessing_has_says_what_to_write_instead(pool: Pool, name: str) -> None:
    assert not hasattr(pool, name)
    with pytest.raises(AttributeError, match=rf"'Pool' object has no attribute '{name}'.*: write pool\."):
        getattr(pool, name)


def test_another_name_that_a_pool_does_not_have_is_a_usual_attribute_error(pool: Pool) -> None:
    with pytest.raises(AttributeError, match=r"^'Pool' object has no attribute 'mop'$") as caught:
        pool.mop  # type: ignore[attr-defined]  # noqa: B018 - reading it is the test
    assert (caught.value.name, caught.value.obj) == ("mop", pool)


def test_the_error_of_a_captured_pool_names_the_call_that_finds_it_in_a_task(pool: Pool, embedded: Pool) -> None:
    with pytest.raises(SerializationError, match=r"inside the task, by Pool\(endpoint, token\)"):
        pool.submit(lambda: pool.map(abs, [1]))
    with pytest.raises(SerializationError, match=r"inside the task, by Pool\(\), which is this pool there"):
        embedded.submit(lambda: embedded.map(abs, [1]))


def test_reprs_show_what_pools_and_results_are(pool: Pool, embedded: Pool) -> None:
    results, unordered = pool.map(abs, range(3)), pool.map_unordered(abs, [1], buffersize=1)
    assert repr(results) == f"<MapResults of 3 tasks, package {results.package_id}>"
    assert repr(unordered) == f"<UnorderedResults of 1 task so far, package {unordered.package_id}>"
    assert repr(pool.map(abs, [])) == "<MapResults of 0 tasks>"
    assert results.package_id is not None
    assert repr(pool.attach(results.package_id)) == f"<Attachment to package {results.package_id}>"
    assert re.fullmatch(rf"<Pool at {pool.endpoint}, \d packages? under way>", repr(pool))
    assert re.fullmatch(r"<Pool of 2 executors on this machine, \d packages? under way>", repr(embedded))
    assert repr(object.__new__(Pool)) == "<Pool that did not start>"
    pool.shutdown(wait=False)
    assert repr(pool) == f"<Pool at {pool.endpoint}, shut down>"
