"""The form of tokens."""

import re
from collections.abc import Callable

import pytest

from cloudpar_protocol.tokens import has_checksum, new_token


def test_a_scanner_for_secrets_knows_a_token_by_its_form() -> None:
    made = {new_token() for _ in range(50)}
    assert len(made) == 50
    assert all(re.fullmatch(r"cloudpar_[0-9A-Za-z]{49}", token) for token in made)
    assert all(map(has_checksum, made))


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token[:-1],
        lambda token: token + "0",
        lambda token: token[:20] + "!" + token[21:],
        lambda token: token[1:],
        lambda token: token[len("cloudpar_") :],
        lambda token: " " + token,
        lambda token: token.replace("cloudpar_", "Cloudpar_"),
    ],
)
def test_a_token_that_was_not_copied_whole_is_no_token(change: Callable[[str], str]) -> None:
    with pytest.raises(ValueError, match="is not whole, or has a typing error: copy it again"):
        has_checksum(change(new_token()))


def test_each_typing_error_of_one_character_is_found() -> None:
    token = new_token()
    for place in range(len(token)):
        wrong = "a" if token[place] != "a" else "b"
        with pytest.raises(ValueError, match="typing error"):
            has_checksum(token[:place] + wrong + token[place + 1 :])


@pytest.mark.parametrize("token", ["", "user", "6iS_b5oVbEyUj3Nn1Rxxkqzg-gYcJq4rH6mB0bPWQnE"])
def test_a_token_of_an_earlier_release_has_no_checksum(token: str) -> None:
    assert not has_checksum(token)
