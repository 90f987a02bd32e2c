"""Guarantee 21: requests that the master refuses take turns as others do, so that they delay no other client."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cloudpar_master.core.policy import Policy
from cloudpar_protocol import codec, proofs, routes
from cloudpar_protocol.account_messages import CreateAccount
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.limits import BODY_BYTES
from support.asgi import Answer, Exchange

from .served import CONNECTION, Served

pytestmark = pytest.mark.anyio

MANY = 100
PROVE = codec.encode(proofs.Prove(key="0" * 16, nonce="0" * 32))


def ask(method: str, path: str, body: bytes = b"", token: str = "", length: int | None = None) -> Exchange:
    headers = {"authorization": token} | ({} if length is None else {"content-length": str(length)})
    return Exchange(method, CONNECTION.endpoint + path, body, headers)


REFUSED: dict[str, Callable[[], Exchange]] = {
    "no token": lambda: ask("POST", routes.HELLO.path),
    "unknown token": lambda: ask("POST", routes.HELLO.path, token="Bearer unknown"),
    "foreign credential": lambda: ask("POST", routes.HELLO.path, token=f"Cloudpar {'0' * 16}.00"),
    "unknown key": lambda: ask("POST", proofs.PATH, PROVE),
    "long challenge": lambda: ask("POST", proofs.PATH, bytes(2_000)),
    "unknown path": lambda: ask("GET", "/unknown"),
    "unknown method": lambda: ask("DELETE", routes.HELLO.path),
    "unknown call": lambda: ask("POST", "/v1/unknown", token="Bearer user"),
    "foreign link": lambda: ask("GET", "/blobs/data/a/b?expires=1"),
    "rate": lambda: ask("POST", routes.HELLO.path, codec.encode(Hello()), "Bearer other"),
    "large body": lambda: ask("POST", routes.HELLO.path, token="Bearer worker", length=BODY_BYTES + 1),
}


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Served]:
    """A master that admits one request of each account, with an account "other" that has sent it."""
    served = Served(tmp_path / "data", Policy(request_burst=1, requests_per_s=1e-9))
    account = CreateAccount(idempotency_key="k", name="other", token_hash=proofs.hash_token("other"), quota_us=1)
    served.call("admin", routes.CREATE_ACCOUNT, account)
    served.call("other", routes.HELLO, Hello())
    yield served
    served.close()


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
async def test_g21_refused_requests_delay_another_one_by_few_turns(
    limited: Served, refused: Callable[[], Exchange]
) -> None:
    """Once, they were refused as they came: beside 250 connections of a stranger, a request took 100 times as long."""
    order: list[str] = []

    async def run(name: str, exchange: Exchange) -> Answer:
        answer = await exchange.run(limited.app)
        order.append(name)
        return answer

    many = [asyncio.ensure_future(run("refused", refused())) for _ in range(MANY)]
    await asyncio.sleep(0)
    answer = await run("user", limited.exchange("user", routes.HELLO, Hello()))
    assert answer.status == 200
    assert order.index("user") <= 3
    statuses = {each.status for each in await asyncio.gather(*many)}
    assert statuses <= {200, 400, 401, 403, 404, 405, 413, 429}
    assert len(statuses) == 1
