"""Which environment variables executors get."""

from cloudpar_worker.shell.environment import for_executors

THERE = {"PATH": "/bin", "LC_ALL": "C", "CLOUDPAR_TOKEN": "t", "AWS_SECRET_ACCESS_KEY": "s", "PYTHONPATH": ":/a:.:/b:"}


def test_in_a_shared_pool_executors_get_harmless_variables() -> None:
    assert for_executors(THERE, shared=True) == {"PATH": "/bin", "LC_ALL": "C", "PYTHONPATH": "/a:/b"}


def test_with_isolation_own_executors_get_all_but_cloudpar_variables() -> None:
    assert for_executors(THERE, shared=False) == {name: THERE[name] for name in THERE if name != "CLOUDPAR_TOKEN"}
