"""Ctrl-C while the program waits: how long it takes if the master does not answer."""

from types import SimpleNamespace
from typing import Any

import pytest

from cloudpar._client.interruption import AWAY_S, SETTLE_S, interrupt
from cloudpar.errors import CloudparError, MasterUnreachable, RateLimited


class Session:
    """Refuses each cancellation with this error."""

    def __init__(self, error: CloudparError) -> None:
        self._error = error
        self.allowances: list[float] = []

    def cancel(self, package_id: str, *, allowance_s: float) -> None:
        del package_id
        self.allowances.append(allowance_s)
        raise self._error


def handle(lost: list[CloudparError]) -> Any:
    return SimpleNamespace(
        id="p", ended=SimpleNamespace(is_set=lambda: False), cancelled=lambda: None, lost=lost.append
    )


@pytest.mark.parametrize(
    ("error", "allowances"),
    [
        (MasterUnreachable("no answer"), [SETTLE_S, AWAY_S, AWAY_S]),
        (RateLimited("too many"), [SETTLE_S, SETTLE_S, SETTLE_S]),
    ],
)
def test_a_master_that_is_away_is_waited_for_once(
    error: CloudparError, allowances: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    session: Any = Session(error)
    lost: list[CloudparError] = []
    interrupt(session, [handle(lost) for _ in range(3)])
    assert session.allowances == allowances
    assert lost == [error] * 3
    assert "cancelled 3 packages" in capsys.readouterr().err
