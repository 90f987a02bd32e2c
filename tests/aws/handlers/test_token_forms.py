"""A request whose token no command can have made costs no read of a table."""

import pytest

from cloudpar_master.adapters.aws.account_store import DynamoAccountStore
from cloudpar_master.ports import AccountRecord
from cloudpar_protocol import codec, routes
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.errors import InvalidToken
from cloudpar_protocol.tokens import PREFIX
from cloudpar_protocol.worker_messages import RetrieveTasks
from support.stores import Stores

from .calls import ask, body_of, event
from .conftest import WORKER_TOKEN, Context, Start, hash_token

WHOLE = "cloudpar_0123456789012345678901234567890123456789abc1s1IkI"


@pytest.fixture
def reads(stack: Stores, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hashes of the tokens that the functions have looked up."""
    found: list[str] = []
    by_token = DynamoAccountStore.by_token

    def noted(self: DynamoAccountStore, token_hash: str) -> AccountRecord | None:
        found.append(token_hash)
        return by_token(self, token_hash)

    monkeypatch.setattr(DynamoAccountStore, "by_token", noted)
    return found


def refused(start: Start, token: str) -> str:
    """Return the text with which the functions refuse a token, which both do alike."""
    texts = set()
    for function, path in ((start("client"), routes.HELLO.path), (start("worker"), routes.RETRIEVE_TASKS.path)):
        answer = function.handle(event(path, b"\x80", token), Context())
        error = codec.decode_error(body_of(answer), answer["statusCode"])
        assert isinstance(error, InvalidToken)
        texts.add(str(error))
    (text,) = texts
    return text


@pytest.mark.parametrize("token", ["admin", "a" * 42, "a" * 44, "*" * 43, WHOLE[:-1], WHOLE[1:], PREFIX + "a" * 49])
def test_a_token_that_no_command_makes_is_refused_without_a_read(start: Start, reads: list[str], token: str) -> None:
    assert "is not whole" in refused(start, token)
    assert reads == []


@pytest.mark.parametrize("token", [WHOLE, "Ab_-" * 10 + "123"], ids=["of this release", "of release 0.3.0"])
def test_a_token_that_some_release_makes_is_looked_up(
    start: Start, stack: Stores, reads: list[str], token: str
) -> None:
    assert "unknown here" in refused(start, token)
    stack.accounts.create(AccountRecord("a", "ann", hash_token(token), "active", 10**12, 0, 0, 0.0))
    assert ask(start("client"), routes.HELLO, Hello(), token).role == "user"
    assert set(reads) == {hash_token(token)}


def test_the_fleets_token_may_have_any_form_and_costs_no_read(start: Start, reads: list[str]) -> None:
    asked = RetrieveTasks(attempt_id="t", worker_id="w", executors=1, chunks=1)
    assert ask(start("worker"), routes.RETRIEVE_TASKS, asked, WORKER_TOKEN).leases == []
    assert reads == []
