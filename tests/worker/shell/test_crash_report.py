from cloudpar_worker.shell.crash_report import without_own_frames

OWN = (
    '  File "/venv/lib/python3.11/site-packages/cloudpar_worker/executor/runner.py", line 195 in _call\n'
    '  File "<frozen runpy>", line 198 in _run_module_as_main\n'
)
REPORT = 'Fatal Python error: Segmentation fault\n\nCurrent thread 0x1:\n  File "a.py", line 4 in f\n'


def test_a_crash_report_keeps_the_frames_of_the_task_alone() -> None:
    end = "\nExtension modules: numpy (total: 1)\n"
    assert without_own_frames(REPORT + OWN + end) == REPORT + end


def test_what_a_task_wrote_before_the_crash_is_kept() -> None:
    assert without_own_frames(OWN + REPORT + OWN) == OWN + REPORT


def test_output_without_a_crash_report_is_kept() -> None:
    assert without_own_frames(OWN) == OWN


def test_a_line_of_a_crash_report_that_a_task_made_up_is_read_once() -> None:
    """A search that starts again at each name of the folder would not end within the time of a test."""
    line = '  File "' + "/cloudpar_worker/" * 500_000
    text = f"{REPORT}{line}\n{line}"
    assert without_own_frames(text) == text
