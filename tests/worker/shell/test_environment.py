"""What executors see of the environment."""

from cloudpar_worker.shell.environment import for_executors

THERE = {"PATH": "/bin", "LC_ALL": "C", "CLOUDPAR_TOKEN": "t", "AWS_SECRET_ACCESS_KEY": "s", "PYTHONPATH": ":/a:.:/b:"}


def test_tasks_of_others_see_what_is_harmless() -> None:
    assert for_executors(THERE, shared=True) == {"PATH": "/bin", "LC_ALL": "C", "PYTHONPATH": "/a:/b"}


def test_tasks_of_ones_own_see_all_but_ours() -> None:
    assert for_executors(THERE, shared=False) == {name: THERE[name] for name in THERE if name != "CLOUDPAR_TOKEN"}
