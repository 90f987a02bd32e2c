from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event

import pytest

from cloudpar import local_modules
from cloudpar.local_modules import LocalModules


def test_two_threads_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    looking, on = Event(), Event()

    def is_local(_module: object) -> bool:
        looking.set()
        return on.wait()

    monkeypatch.setattr(local_modules, "is_local", is_local)
    modules = LocalModules()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(modules.find)
        looking.wait()
        second = threads.submit(modules.find)
        wait([second], timeout=0.1)  # as long as it takes who does not wait for the other
        on.set()
        assert first.result() == second.result() != {}
