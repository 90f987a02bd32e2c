"""Over plain HTTP, a master first proves that it knows a token. The client shows the token only after this proof.

If a foreign process takes a master's port while the master restarts, it must not get the tokens that clients and
workers send. So a client first sends a challenge, `Prove`: the start of the token's hash, and a nonce. The master
answers with a nonce, which each master process makes once, and with a proof that it knows the token's hash. If the
proof is right, the client sends its requests with the header `Authorization: Cloudpar CREDENTIAL`. The credential is
the token, encrypted with a key that is derived from the token's hash and the master's nonce. A process that does not
know the hash learns nothing from the credential. A restarted master refuses the credential, because the new process has
a new nonce. The hash alone, which is in the master's tables, is not enough to make a credential. SCRAM (RFC 5802) works
in the same way.
"""

import hashlib
import hmac
import re
from collections.abc import Iterator
from itertools import count
from typing import Annotated, Final

from msgspec import Meta

from .message import Message
from .payloads import Hash

PATH: Final = "/v1/prove"
"""The path of the challenge below the endpoint: POST a `Prove`, without a token. Only embedded masters have it."""

SCHEME: Final = "Cloudpar"
"""The scheme of the header `Authorization` for a credential. For a plain token it is `Bearer`."""

_KEY_DIGITS: Final = 16
_CREDENTIAL: Final = re.compile(rf"([0-9a-f]{{{_KEY_DIGITS}}})\.((?:[0-9a-f]{{2}})*)")

Key = Annotated[str, Meta(pattern=f"^[0-9a-f]{{{_KEY_DIGITS}}}$", max_length=_KEY_DIGITS)]
Nonce = Annotated[str, Meta(pattern="^[0-9a-f]{32}$", max_length=32)]
"""128 random bits in hexadecimal digits."""

NONCE_BYTES: Final = 16


class Prove(Message, frozen=True, kw_only=True):
    """Ask a master to prove that it knows a token. `key` is the start of the token's SHA-256; see `key_of`."""

    key: Key
    nonce: Nonce


class ProveReply(Message, frozen=True, kw_only=True):
    """The nonce of this master process, and its proof. For an unknown key, the proof is a random one."""

    nonce: Nonce
    proof: Hash


def hash_token(token: str) -> str:
    """Return the hash of a token, as masters store it. A plain SHA-256 does not reveal the 256 random bits of a token.

    >>> hash_token("secret")[:8]
    '2bb80d53'
    """
    return hashlib.sha256(token.encode()).hexdigest()


def key_of(token_hash: str) -> str:
    """Return the key by which a master finds the token. This key does not reveal the token."""
    return token_hash[:_KEY_DIGITS]


def proof(token_hash: str, client_nonce: str, master_nonce: str) -> str:
    """Return the proof of a master that knows the hash of a token."""
    return _hmac(token_hash, f"master{client_nonce}{master_nonce}").hex()


def proves(reply: ProveReply, token_hash: str, client_nonce: str) -> bool:
    """Whether the sender of a reply knows the hash of a token. `client_nonce` is the nonce of the challenge."""
    return hmac.compare_digest(reply.proof, proof(token_hash, client_nonce, reply.nonce))


def credential(token: str, token_hash: str, master_nonce: str) -> str:
    """Encrypt a token for a master process that has proved itself."""
    return f"{key_of(token_hash)}.{_mixed(token.encode(), token_hash, master_nonce).hex()}"


def parse(sent: str) -> tuple[str, bytes] | None:
    """Return the key and the encrypted token of a credential; None if it is malformed."""
    match = _CREDENTIAL.fullmatch(sent)
    return None if match is None else (match[1], bytes.fromhex(match[2]))


def decrypted(encrypted: bytes, token_hash: str, master_nonce: str) -> bytes:
    """Decrypt a token. If the credential was made with a different hash or nonce, the result is a wrong token."""
    return _mixed(encrypted, token_hash, master_nonce)


def _mixed(content: bytes, token_hash: str, master_nonce: str) -> bytes:
    return bytes(one ^ other for one, other in zip(content, _stream(token_hash, master_nonce), strict=False))


def _stream(token_hash: str, master_nonce: str) -> Iterator[int]:
    # The text starts with another word than the text of a proof, so the answer to a challenge never reveals this
    # stream.
    for block in count():
        yield from _hmac(token_hash, f"client{master_nonce}{block}")


def _hmac(token_hash: str, text: str) -> bytes:
    return hmac.digest(bytes.fromhex(token_hash), text.encode(), "sha256")
