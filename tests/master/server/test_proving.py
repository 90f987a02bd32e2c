"""The challenge that a master answers to callers without a token, and the tokens that are encrypted for its process."""

from pathlib import Path
from typing import Any

import pytest

from cloudpar_protocol import codec, proofs, routes
from cloudpar_protocol.account_messages import CreateAccount, RevokeAccount
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.proofs import Prove, ProveReply
from master.server.served import CONNECTION, Served, decoded, error
from support.asgi import Answer

NONCE = "0123456789abcdef" * 2
HELLO = codec.encode(Hello())
MSGPACK = {"content-type": codec.MSGPACK}


def challenge(served: Served, token: str) -> ProveReply:
    key = proofs.key_of(proofs.hash_token(token))
    answer = served.send("POST", proofs.PATH, codec.encode(Prove(key=key, nonce=NONCE)), MSGPACK)
    assert answer.status == 200
    return decoded(answer, ProveReply)


def hello(served: Served, credential: str) -> Answer:
    return served.send("POST", "/v1/hello", HELLO, {**MSGPACK, "authorization": f"Cloudpar {credential}"})


def credential(token: str, nonce: str) -> str:
    return proofs.credential(token, proofs.hash_token(token), nonce)


def create(served: Served, name: str, token: str) -> str:
    request = CreateAccount(idempotency_key=name, name=name, token_hash=proofs.hash_token(token), quota_us=10)
    return served.call("admin", routes.CREATE_ACCOUNT, request).account.account_id


@pytest.mark.parametrize("token", [CONNECTION.token, CONNECTION.worker_token, CONNECTION.admin_token, "ann's"])
def test_a_master_proves_that_it_knows_a_token_and_takes_it_encrypted(served: Served, token: str) -> None:
    create(served, "ann", "ann's")
    reply = challenge(served, token)
    assert proofs.proves(reply, proofs.hash_token(token), NONCE)
    assert hello(served, credential(token, reply.nonce)).status == 200


def test_a_json_challenge_gets_a_json_proof(served: Served) -> None:
    key = proofs.key_of(proofs.hash_token("user"))
    body = codec.encode(Prove(key=key, nonce=NONCE), codec.JSON)
    reply = decoded(served.send("POST", proofs.PATH, body, {"content-type": codec.JSON}), ProveReply, codec.JSON)
    assert proofs.proves(reply, proofs.hash_token("user"), NONCE)


def test_an_unknown_token_gets_a_wrong_proof_and_no_error(served: Served) -> None:
    one, again, other = (challenge(served, token) for token in ("unknown", "unknown", "another"))
    assert not proofs.proves(one, proofs.hash_token("unknown"), NONCE)
    assert one == again
    assert one.nonce == other.nonce
    assert one.proof != other.proof


def test_a_credential_is_of_no_use_after_a_restart(served: Served, tmp_path: Path) -> None:
    caught = credential("user", challenge(served, "user").nonce)
    assert hello(served, caught).status == 200
    served.close()
    again = Served(tmp_path / "data")
    answer = hello(again, caught)
    assert (answer.status, error(answer).code) == (401, "invalid_token")
    assert "not for this process of the master" in error(answer).message
    assert hello(again, credential("user", challenge(again, "user").nonce)).status == 200
    again.close()


def test_the_hash_of_a_token_is_not_enough(served: Served) -> None:
    nonce, token_hash = challenge(served, "user").nonce, proofs.hash_token("user")
    for guess in (token_hash, "", "guess"):
        assert hello(served, proofs.credential(guess, token_hash, nonce)).status == 401


def test_a_master_that_proves_itself_reports_a_revoked_account(served: Served) -> None:
    account_id = create(served, "ann", "ann's")
    served.call("admin", routes.REVOKE_ACCOUNT, RevokeAccount(account_id=account_id))
    reply = challenge(served, "ann's")
    assert proofs.proves(reply, proofs.hash_token("ann's"), NONCE)
    answer = hello(served, credential("ann's", reply.nonce))
    assert (answer.status, "'ann' was revoked" in error(answer).message) == (401, True)


@pytest.mark.parametrize("sent", ["", "user", ".", "00.00", f"{'0' * 16}.", "\xff"])
def test_a_malformed_credential_is_refused(served: Served, sent: str) -> None:
    assert hello(served, sent).status == 401


@pytest.mark.parametrize(
    ("method", "body", "status"),
    [
        ("POST", b"", 400),
        ("POST", codec.encode(Hello()), 400),
        ("POST", codec.encode({"key": "0" * 16, "nonce": "x"}), 400),
        ("POST", [b" " * 600] * 2, 413),
        ("GET", b"", 405),
    ],
)
def test_what_is_no_challenge_is_refused(served: Served, method: str, body: Any, status: int) -> None:
    assert served.send(method, proofs.PATH, body, MSGPACK).status == status


def test_accounts_with_neighbouring_hashes_are_distinguished(served: Served) -> None:
    for number in range(50):
        create(served, f"account {number}", f"token {number}")
    for number in range(50):
        token = f"token {number}"
        assert hello(served, credential(token, challenge(served, token).nonce)).status == 200
