"""Which figures an operator may set."""

import msgspec
import pytest

from cloudpar_master.core.policy import Policy


@pytest.mark.parametrize(("name", "least"), [("first_window", 1), ("lease_s", 0.5), ("kept_bytes", 0)])
def test_a_figure_may_be_small_but_not_zero_where_nothing_would_work_with_it(name: str, least: float) -> None:
    assert getattr(msgspec.convert({name: least}, Policy), name) == least
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({name: least - 1 if name != "lease_s" else 0.0}, Policy)
