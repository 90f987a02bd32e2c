"""Which environment variables executors get."""

from cloudpar_worker.shell.zygote_process import executor_environment

THERE = {"PATH": "/bin", "LC_ALL": "C", "CLOUDPAR_TOKEN": "t", "AWS_SECRET_ACCESS_KEY": "s", "PYTHONPATH": ":/a:.:/b:"}


def test_in_a_shared_pool_executors_get_harmless_variables() -> None:
    assert executor_environment(THERE, shared=True) == {"PATH": "/bin", "LC_ALL": "C", "PYTHONPATH": "/a:/b"}


def test_with_isolation_own_executors_get_all_but_cloudpar_variables() -> None:
    assert executor_environment(THERE, shared=False) == {
        name: THERE[name] for name in THERE if name != "CLOUDPAR_TOKEN"
    }
