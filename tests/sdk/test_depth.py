"""How deep the SDK is: how many functions one request passes, and how many modules a reader may have to follow.

Counted are the frames of `cloudpar` and `cloudpar_protocol`, from the call of the user's program to `Channel.call`,
which makes one attempt of a request. `Channel.call` itself counts, and so does the wrapper that checks the keyword
arguments of `Pool.map`. Of imports, those that only type checkers read do not count.
"""

import sys
import traceback
from functools import cache
from typing import Any

import grimp
import pytest

from cloudpar import Pool
from cloudpar_protocol.routes import START_TASKS
from cloudpar_protocol.transport.channel import Channel

OURS = ("cloudpar.", "cloudpar_protocol.")
FRAMES = 10
MODULES = 11


def test_the_start_request_of_a_map_passes_at_most_ten_of_our_functions(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Channel.call
    passed: list[str] = []

    def recording(channel: Channel, route: Any, *arguments: Any) -> Any:
        if route is START_TASKS:
            callers = [frame for frame, _ in traceback.walk_stack(sys._getframe(1))]
            ours = [
                each for each in callers if each.f_globals["__name__"].startswith(("cloudpar.", "cloudpar_protocol."))
            ]
            passed.extend([call.__qualname__, *(each.f_code.co_qualname for each in ours)])
        return call(channel, route, *arguments)

    monkeypatch.setattr(Channel, "call", recording)
    assert list(pool.map(abs, [-1, -2])) == [1, 2]
    assert "PackageFeed.refill" in passed  # the request was seen, and it came from the map
    assert len(passed) <= FRAMES, passed


def test_a_chain_of_imports_from_the_pool_has_at_most_eleven_modules() -> None:
    graph = grimp.build_graph("cloudpar", exclude_type_checking_imports=True, cache_dir=None)

    @cache
    def longest(module: str) -> tuple[str, ...]:
        chains = map(longest, graph.find_modules_directly_imported_by(module))
        return module, *max(chains, key=len, default=())

    chain = longest("cloudpar.pool")
    assert "cloudpar._serialization.pickling" in {each for module in graph.modules for each in longest(module)}
    assert len(chain) <= MODULES, chain
