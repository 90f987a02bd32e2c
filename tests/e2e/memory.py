"""Functions cache accounts for a while: a revocation or an exhausted quota takes effect within that time."""

import time
from collections.abc import Callable
from threading import Event

from cloudpar_master.adapters.aws.account_store import MEMORY_S
from support.waiting import HANG_S


def refused_soon(call: Callable[[], object], kind: type[Exception], text: str) -> None:
    """Call until the call is refused for that reason."""
    deadline = time.monotonic() + HANG_S
    said = ""
    while not said:
        try:
            call()
        except kind as error:
            said = str(error)
        else:
            assert time.monotonic() < deadline
            Event().wait(MEMORY_S / 20)
    assert text in said
