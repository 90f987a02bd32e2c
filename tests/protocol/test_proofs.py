"""How a master proves that it knows a token, and how a token is encrypted for it. sdk/protocol/vectors/proofs.json has
the values that the JavaScript SDK makes, too."""

import json
from pathlib import Path

import pytest

from cloudpar_protocol import codec, proofs
from cloudpar_protocol.errors import BadRequest
from cloudpar_protocol.proofs import Prove, ProveReply

VECTORS = json.loads((Path(proofs.__file__).parents[1] / "vectors" / "proofs.json").read_text())
ONE, OTHER = "0" * 32, "1" * 32
HASH = proofs.hash_token("secret")


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["token"] for vector in VECTORS])
def test_proofs_and_credentials_are_as_released(vector: dict[str, str]) -> None:
    token_hash = proofs.hash_token(vector["token"])
    assert proofs.key_of(token_hash) == vector["key"]
    assert proofs.proof(token_hash, vector["client_nonce"], vector["master_nonce"]) == vector["proof"]
    assert proofs.credential(vector["token"], token_hash, vector["master_nonce"]) == vector["credential"]
    prove = Prove(key=vector["key"], nonce=vector["client_nonce"])
    reply = ProveReply(nonce=vector["master_nonce"], proof=vector["proof"])
    assert [codec.encode(prove).hex(), codec.encode(reply).hex()] == [vector["prove"], vector["reply"]]


def test_a_proof_is_for_one_token_and_one_challenge() -> None:
    reply = ProveReply(nonce=OTHER, proof=proofs.proof(HASH, ONE, OTHER))
    assert proofs.proves(reply, HASH, ONE)
    assert not proofs.proves(reply, HASH, OTHER)
    assert not proofs.proves(reply, proofs.hash_token("another"), ONE)
    assert not proofs.proves(ProveReply(nonce=ONE, proof=reply.proof), HASH, ONE)


def test_a_credential_gives_the_token_to_the_process_for_which_it_was_made() -> None:
    key, encrypted = proofs.parse(proofs.credential("secret", HASH, ONE)) or ("", b"")
    assert key == HASH[:16]
    assert proofs.decrypted(encrypted, HASH, ONE) == b"secret"
    assert proofs.decrypted(encrypted, HASH, OTHER) != b"secret"
    assert proofs.decrypted(encrypted, proofs.hash_token("another"), ONE) != b"secret"


@pytest.mark.parametrize("sent", ["", "secret", f"{HASH[:16]}", f"{HASH[:15]}.00", f"{HASH[:16]}.0", f"{HASH[:16]}.0g"])
def test_a_malformed_credential_is_none(sent: str) -> None:
    assert proofs.parse(sent) is None


@pytest.mark.parametrize("field", [{"key": "0" * 15}, {"key": "0" * 17}, {"key": "g" * 16}, {"nonce": "0" * 33}])
def test_a_malformed_challenge_is_refused(field: dict[str, str]) -> None:
    body = codec.encode({"v": 1, "key": "0" * 16, "nonce": ONE} | field)
    with pytest.raises(BadRequest, match="not a valid Prove"):
        codec.decode(body, Prove)
