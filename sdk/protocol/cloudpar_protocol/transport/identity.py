"""Shows a token to a master. Over plain HTTP the master must first prove that it knows the token; see `proofs`."""

import secrets

from cloudpar_protocol import codec, proofs, tokens
from cloudpar_protocol.errors import BadRequest, InvalidToken, RequestError

from .answer import Answer
from .connection_pool import Ask, one_line, split

_NO_ROUTE = frozenset({404, 405})
"""The statuses with which a server answers if it does not know the challenge. Such a server is a master of release
0.2.0 or earlier, or a master on AWS.
"""

_PROVED: set[tuple[str, str]] = set()
"""The addresses whose server has proved to this process that it knows a token, each with the hash of that token.

All connections of the process share this set: a worker has several channels to one master.
"""


class Unproved(ConnectionError):
    """The process that answers at the master's address does not know the token."""


class MasterIdentity:
    """A token, and the master to which it is shown.

    Args:
        endpoint: The master's URL.
        token: The token.

    Raises:
        ValueError: The endpoint is not a URL, or the token has a checksum that does not match, or characters that a
            token cannot have.
    """

    def __init__(self, endpoint: str, token: str) -> None:
        url = split(endpoint)
        self._address = f"{url.scheme}://{url.netloc}"
        self._path = url.path.rstrip("/") + proofs.PATH
        self._bearer = one_line(f"Bearer {token}")
        self._token, self._hash = token, proofs.hash_token(token)
        self._must_prove = tokens.has_checksum(token)
        self._is_plain = url.scheme == "https"
        """Whether to show the token as it is. This is True with TLS, which has proved who the server is. It is also
        True if the server does not know the challenge and an earlier release made the token."""

    @property
    def is_proved(self) -> bool:
        """Whether the master has proved itself over plain HTTP."""
        return (self._address, self._hash) in _PROVED

    def show(self, ask: Ask) -> str:
        """Let the server at the other end of a new connection prove itself; return the value of `Authorization`.

        Raises:
            OSError: There is no answer. Or the server does not know the token, but the master at this address has
                proved itself earlier: a foreign process has taken the address, and the master may come back.
            InvalidToken: The server does not know the token, and has never proved itself to this process.
            RequestError: The server answers with an error, or with no proof, and has never proved itself to this
                process.
        """
        if not self._is_plain or self.is_proved:
            proved = self._proved(ask)
            if proved is not None:
                return proved
            self._is_plain = True
        return self._bearer

    def verify(self, ask: Ask) -> str:
        """Let the server prove itself as in `show`, but return "": requests that carry a link need no token."""
        self.show(ask)
        return ""

    def _proved(self, ask: Ask) -> str | None:
        """Return a credential; None if the server knows no challenge, and the token may be shown to such a server."""
        nonce = secrets.token_hex(proofs.NONCE_BYTES)
        body = codec.encode(proofs.Prove(key=proofs.key_of(self._hash), nonce=nonce))
        answer = ask(self._path, body)
        try:
            reply = self._reply(answer)
        except RequestError:
            if self.is_proved:
                raise Unproved(_STRANGER) from None
            raise
        if reply is None:
            return None
        if not proofs.proves(reply, self._hash, nonce):
            if self.is_proved:
                raise Unproved(_STRANGER)
            raise InvalidToken(
                f"this token is unknown at {self._address}: check that it is this master's (CLOUDPAR_TOKEN of a user, "
                "CLOUDPAR_WORKER_TOKEN of a worker, CLOUDPAR_ADMIN_TOKEN of an operator), or ask the operator for one; "
                "or the process that answers there is not this master"
            )
        _PROVED.add((self._address, self._hash))
        return f"{proofs.SCHEME} {proofs.credential(self._token, self._hash, reply.nonce)}"

    def _reply(self, answer: Answer) -> proofs.ProveReply | None:
        if answer.status in _NO_ROUTE:
            if self.is_proved or self._must_prove:
                raise RequestError(
                    f"the server at {self._address} does not prove that it knows the token (HTTP status "
                    f"{answer.status}), and without TLS this token is sent only to a master that does: check the "
                    "endpoint; update a master of release 0.2.0 or earlier; or use https"
                )
            return None
        if answer.status != 200:
            raise codec.decode_error(answer.body, answer.status)
        try:
            return codec.decode(answer.body, proofs.ProveReply)
        except BadRequest as error:
            raise RequestError(f"what answers at {self._address} is not a master: {error}") from None


_STRANGER = (
    "a process answers at this address that does not know the token, so it is not this deployment's master, or the "
    "token is no longer one of this master"
)
