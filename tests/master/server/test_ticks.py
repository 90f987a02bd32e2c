"""The loop of the timer goes on, whatever fails in it."""

import asyncio
import logging
import sqlite3

import pytest

from cloudpar_master.server import process
from cloudpar_master.services.steps import finish
from cloudpar_protocol import routes

from .served import Served, start_tasks

pytestmark = pytest.mark.anyio

UNDECODABLE = sqlite3.OperationalError("Could not decode to UTF-8 column 'account' with text 'a\xff'")
"""As Python makes it: the error has no code of SQLite."""


async def test_the_timer_folds_packages_although_the_queue_cannot_be_read(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    await served.ask("user", routes.START_TASKS, start_tasks())
    due = served.assembly.clock.now() + served.assembly.blobs_kept_s
    monkeypatch.setattr(served.assembly.clock, "now", lambda: due)

    def unreadable(*_: object) -> None:
        raise UNDECODABLE

    for name in ("waiting_needs", "dead"):
        monkeypatch.setattr(served.assembly.queue, name, unreadable)
    with pytest.raises(ExceptionGroup):
        finish(served.assembly.tick())
    rows = served.assembly.database.execute("SELECT count(*) FROM packages WHERE running").fetchone()
    assert rows == (0,)


async def test_the_loop_of_the_timer_survives_an_error_that_has_no_code_of_sqlite(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ticks, thrice = [], asyncio.Event()

    def fail() -> None:
        ticks.append(1)
        if len(ticks) == 3:
            thrice.set()
        raise UNDECODABLE

    monkeypatch.setattr(served.assembly.queue, "waiting_needs", fail)
    server = process.MasterServer(served.assembly, lambda: None)
    loop = asyncio.ensure_future(process._tick(served.assembly._replace(lease_s=0.0), server, None))
    over = asyncio.ensure_future(thrice.wait())
    await asyncio.wait({loop, over}, return_when=asyncio.FIRST_COMPLETED)
    assert not loop.done()
    for task in (loop, over):
        task.cancel()
    assert {record.levelno for record in caplog.records} == {logging.ERROR}


async def test_the_loop_that_saves_the_time_survives_any_error(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ValueError("x")

    monkeypatch.setattr(served.assembly.clock, "check", fail)
    process._try_clock(served.assembly, served.assembly.clock.check)
    assert "the master's time cannot be saved" in caplog.text
