"""To whom a channel sends its token over plain HTTP: only to a server that has proved that it knows the token."""

from collections.abc import Callable, Iterator

import pytest

from cloudpar_protocol import codec, proofs, routes
from cloudpar_protocol.client_messages import Hello, HelloReply
from cloudpar_protocol.errors import InvalidToken, RequestError, Unavailable
from cloudpar_protocol.payloads import Link
from cloudpar_protocol.proofs import Prove, ProveReply
from cloudpar_protocol.tokens import new_token
from cloudpar_protocol.transport import identity
from cloudpar_protocol.transport.channel import Channel
from cloudpar_protocol.transport.identity import Unproved
from cloudpar_protocol.transport.socket_pool import Timeouts
from support.http_server import Answer, HttpServer, Request

LONG = Timeouts(30.0, 30.0)
HELLO = codec.encode(Hello())
EARLIER = "a token of release 0.2.0"
LINK = Link("PUT", "/blobs/k?signature=s")


class Peer:
    """A server that knows one token, until the test makes it answer challenges in another way."""

    def __init__(self, token: str) -> None:
        self.hash = proofs.hash_token(token)
        self.nonce = "a" * 32
        self.challenged: Callable[[Prove], Answer] = self.prove
        self.requests: list[tuple[str, str | None]] = []
        self._server = HttpServer(self._serve)
        self.endpoint = self._server.endpoint
        self.close = self._server.close

    def prove(self, asked: Prove) -> Answer:
        return Answer(
            200, codec.encode(ProveReply(nonce=self.nonce, proof=proofs.proof(self.hash, asked.nonce, self.nonce)))
        )

    def _serve(self, request: Request) -> Answer:
        self.requests.append((request.path, request.headers["Authorization"]))
        if request.path == proofs.PATH:
            return self.challenged(codec.decode(request.body, Prove))
        if request.path.startswith("/blobs/"):
            return Answer(200)
        if request.headers["Authorization"] in {self.credential(), f"Bearer {EARLIER}"}:
            return Answer(200, codec.encode(HelloReply(release="0", role="user")))
        return Answer(401, codec.encode_error(InvalidToken("who is that?")))

    def credential(self) -> str:
        return f"Cloudpar {proofs.credential(TOKEN, self.hash, self.nonce)}"


TOKEN = new_token()


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the servers of other tests: another one may have got the same port."""
    monkeypatch.setattr(identity, "_PROVED", set())


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer(TOKEN)
    yield made
    made.close()


@pytest.fixture
def connect(peer: Peer) -> Iterator[Callable[[str], Channel]]:
    made: list[Channel] = []

    def connect(token: str = TOKEN) -> Channel:
        made.append(Channel(peer.endpoint, token))
        return made[-1]

    yield connect
    for each in made:
        each.close()


def no_route(_: Prove) -> Answer:
    return Answer(404, codec.encode_error(RequestError("no such route")))


def a_wrong_proof(_: Prove) -> Answer:
    return Answer(200, codec.encode(ProveReply(nonce="b" * 32, proof="c" * 64)))


def a_refusal(_: Prove) -> Answer:
    return Answer(401, codec.encode_error(InvalidToken("unknown")))


def a_page(_: Prove) -> Answer:
    return Answer(200, b"<html>")


def too_busy(_: Prove) -> Answer:
    return Answer(503, codec.encode_error(Unavailable("later", 10.0**9)))


OTHERS = [no_route, a_wrong_proof, a_refusal, a_page, too_busy]


def test_a_connection_starts_with_one_challenge(peer: Peer, connect: Callable[..., Channel]) -> None:
    channel = connect()
    for _ in range(3):
        channel.call(routes.HELLO, HELLO, LONG)
    assert peer.requests == [(proofs.PATH, None), *[("/v1/hello", peer.credential())] * 3]


def test_a_link_to_the_master_is_followed_after_a_challenge_and_without_the_token(
    peer: Peer, connect: Callable[..., Channel]
) -> None:
    channel = connect()
    for _ in range(2):
        channel.put(LINK, [b"payload"], LONG)
    assert peer.requests == [(proofs.PATH, None), *[(LINK.url, None)] * 2]
    peer.challenged = a_wrong_proof
    with pytest.raises(Unproved):
        connect().put(LINK, [b"payload"], LONG)
    assert peer.requests[3:] == [(proofs.PATH, None)]


@pytest.mark.parametrize("challenged", OTHERS)
@pytest.mark.parametrize("token", [TOKEN, EARLIER], ids=["new", "of an earlier release"])
def test_a_process_in_the_place_of_a_master_gets_challenges_only(
    connect: Callable[..., Channel], peer: Peer, challenged: Callable[[Prove], Answer], token: str
) -> None:
    peer.hash = proofs.hash_token(token)
    connect(token).put(LINK, [b"payload"], LONG)
    peer.requests.clear()
    peer.challenged = challenged
    for _ in range(2):
        with pytest.raises(Unproved, match="does not know the token, so it is not this deployment's master"):
            connect(token).call(routes.HELLO, HELLO, LONG)
    assert peer.requests == [(proofs.PATH, None)] * 2


@pytest.mark.parametrize(
    ("challenged", "kind", "text"),
    [
        (no_route, RequestError, r"does not prove that it knows the token \(HTTP status 404\).*or use https"),
        (a_wrong_proof, InvalidToken, "this token is unknown at http.*or the process that answers there is not this"),
        (a_refusal, InvalidToken, "^unknown$"),
        (a_page, RequestError, "is not a master: not a valid ProveReply"),
        (too_busy, Unavailable, "^later$"),
    ],
)
def test_a_server_that_has_never_proved_itself_gets_no_token_of_the_new_form(
    peer: Peer,
    connect: Callable[..., Channel],
    challenged: Callable[[Prove], Answer],
    kind: type[RequestError],
    text: str,
) -> None:
    peer.challenged = challenged
    with pytest.raises(RequestError, match=text) as caught:
        connect().call(routes.HELLO, HELLO, LONG)
    assert type(caught.value) is kind
    assert peer.requests == [(proofs.PATH, None)]


@pytest.mark.parametrize("status", [404, 405])
def test_a_master_without_the_route_gets_an_earlier_token_and_no_further_challenge(
    peer: Peer, connect: Callable[..., Channel], status: int
) -> None:
    peer.challenged = lambda _: Answer(status)
    channel = connect(EARLIER)
    channel.call(routes.HELLO, HELLO, LONG)
    channel.put(LINK, [b"payload"], LONG)
    assert peer.requests == [(proofs.PATH, None), ("/v1/hello", f"Bearer {EARLIER}"), (LINK.url, None)]


def test_a_credential_that_is_out_of_date_is_renewed(peer: Peer, connect: Callable[..., Channel]) -> None:
    channel = connect()
    channel.call(routes.HELLO, HELLO, LONG)
    peer.nonce = "d" * 32  # the master behind a proxy that keeps connections has restarted
    channel.call(routes.HELLO, HELLO, LONG)
    assert [path for path, _ in peer.requests] == [proofs.PATH, "/v1/hello", "/v1/hello", proofs.PATH, "/v1/hello"]


def test_a_refusal_of_a_master_that_has_proved_itself_is_final(peer: Peer, connect: Callable[..., Channel]) -> None:
    channel = connect()
    channel.call(routes.HELLO, HELLO, LONG)
    peer.credential = lambda: "none"  # type: ignore[method-assign]
    with pytest.raises(InvalidToken, match="who is that"):
        channel.call(routes.HELLO, HELLO, LONG)
    assert len(peer.requests) == 5


def test_a_token_with_a_typing_error_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ValueError, match="typing error: copy it again"):
        Channel("http://127.0.0.1:1", TOKEN[:-1])


def test_the_path_of_an_endpoint_is_before_that_of_the_challenge(peer: Peer) -> None:
    channel = Channel(f"{peer.endpoint}/lab/", TOKEN)
    with pytest.raises(RequestError):  # this server knows no such path
        channel.call(routes.HELLO, HELLO, LONG)
    channel.close()
    assert peer.requests[0][0] == f"/lab{proofs.PATH}"
