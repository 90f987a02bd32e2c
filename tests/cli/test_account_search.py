"""Finding an account by its name or the start of its id."""

from types import SimpleNamespace
from typing import Any, Literal

import pytest

from cloudpar.cli.account_search import find_account
from cloudpar_protocol.account_messages import Account
from cloudpar_protocol.errors import NotFound


def account(account_id: str, name: str, state: Literal["active", "revoked"] = "active") -> Account:
    return Account(account_id=account_id, name=name, state=state, granted_us=0, spent_us=0, created_at=0.0)


class Master:
    endpoint = "http://master"

    def call(self, *_: Any) -> Any:
        return SimpleNamespace(
            accounts=[
                account("aa11", "ann"), account("aa22", "bob"), account("bb33", "aa"), account("cc44", "aa11"),
                account("dd55", "eve", "revoked"), account("dd66", "eve"), account("ee77", "twin"),
                account("ee88", "twin"), account("ff99", "old", "revoked"),
            ]
        )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "account_id"),
    [
        ("ann", "aa11"), ("aa11", "aa11"), ("aa1", "aa11"), ("aa", "bb33"), ("bb", "bb33"), ("eve", "dd66"),
        ("dd55", "dd55"), ("old", "ff99"),
    ],
)  # fmt: skip
def test_an_exact_id_comes_before_a_name_and_a_name_before_a_start(text: str, account_id: str) -> None:
    assert find_account(Master(), text).account_id == account_id


@pytest.mark.parametrize(
    ("text", "said"),
    [("twin", "2 accounts .*ee77, ee88"), ("ee", "ee77, ee88"), ("zz", "no account 'zz'"), ("", "no account ''")],
)
def test_a_text_that_matches_no_or_several_accounts_is_not_found(text: str, said: str) -> None:
    with pytest.raises(NotFound, match=said):
        find_account(Master(), text)
