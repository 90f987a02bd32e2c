"""Proves to clients that this master knows their tokens, and decrypts the tokens that they then send; see `proofs`."""

import hmac
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from cloudpar_master.services.bodies import bearer, sent_media
from cloudpar_protocol import codec, proofs
from cloudpar_protocol.errors import InvalidToken, TooLarge

from .bodies import answer
from .fair_shares import STRANGERS, FairShares

BODY_BYTES: Final = 1_000
"""The largest body of a challenge, in bytes. The master reads no more, because the sender has shown no token."""

REMEMBERED: Final = 1_000
"""How many credentials are remembered with their tokens, so that a credential is not decrypted again for each
request."""


class Proving:
    """Knows the hashes of tokens, and the nonce that this process of the master made.

    Args:
        fixed: The hashes of the tokens that belong to no account: the worker token and the admin token.
        stored: Called with the first digits of a hash. Returns the hashes of accounts' tokens that start with them.
        shares: Chooses the next request.
    """

    def __init__(self, fixed: Sequence[str], stored: Callable[[str], Iterable[str]], shares: FairShares) -> None:
        self._shares = shares
        self._nonce = secrets.token_hex(proofs.NONCE_BYTES)
        self._secret = secrets.token_bytes(32)
        self._fixed = fixed
        self._stored = stored
        self._decrypted = lru_cache(REMEMBERED)(self._decrypt)

    async def serve(self, request: Request) -> Response:
        """Answer a challenge, POST /v1/prove. If the key is unknown, send a proof that no client accepts.

        Raises:
            RequestError: The request is not a challenge.
        """
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > BODY_BYTES:
                break
        await self._shares.wait(STRANGERS)
        if len(body) > BODY_BYTES:
            raise TooLarge(f"a body of over {BODY_BYTES:,} bytes: a challenge has a key and a nonce")
        asked = codec.decode(body, proofs.Prove, sent_media(request.headers))
        unknown = hmac.digest(self._secret, asked.key.encode(), "sha256").hex()
        token_hash = next(iter(self._hashes(asked.key)), unknown)
        proof = proofs.proof(token_hash, asked.nonce, self._nonce)
        return answer(request, body, proofs.ProveReply(nonce=self._nonce, proof=proof))

    def token(self, headers: Mapping[str, str]) -> str:
        """Return the token of a request, sent as it is or encrypted for this process; "" if there is none.

        Raises:
            InvalidToken: The token was encrypted for another process, or is unknown.
        """
        scheme, _, sent = headers.get("authorization", "").partition(" ")
        if scheme.lower() != proofs.SCHEME.lower():
            return bearer(headers)
        return self._decrypted(sent.strip())

    def _decrypt(self, sent: str) -> str:
        key, encrypted = proofs.parse(sent) or (None, b"")
        for token_hash in self._hashes(key) if key else ():
            token = proofs.decrypted(encrypted, token_hash, self._nonce).decode(errors="replace")
            if hmac.compare_digest(proofs.hash_token(token), token_hash):
                return token
        raise InvalidToken(
            f"this credential is not for this process of the master, or its token is unknown: call {proofs.PATH} "
            "again, and check that the token is this master's"
        )

    def _hashes(self, key: str) -> list[str]:
        fixed = [each for each in self._fixed if hmac.compare_digest(proofs.key_of(each), key)]
        return [*fixed, *self._stored(key)]
