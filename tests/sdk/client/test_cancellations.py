"""Ctrl-C while the program waits: how long it takes if the master does not answer."""

from types import SimpleNamespace
from typing import Any

import pytest

from cloudpar._client.cancellations import AWAY_S, SETTLE_S, Cancellations
from cloudpar._client.session_end import SessionEnd
from cloudpar.errors import CloudparError, MasterUnreachable, RateLimited


class Connection:
    """Refuses each request with this error."""

    def __init__(self, error: CloudparError) -> None:
        self._error = error
        self.allowances: list[float] = []

    def call(self, route: object, message: object, *, allowance_s: float) -> None:
        del route, message
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
    connection: Any = Connection(error)
    lost: list[CloudparError] = []
    Cancellations(connection, "s", SessionEnd()).interrupt([handle(lost) for _ in range(3)])
    assert connection.allowances == allowances
    assert lost == [error] * 3
    assert "cancelled 3 packages" in capsys.readouterr().err
