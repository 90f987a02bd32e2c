"""Uploads and downloads take turns: between accounts, and with other requests."""

import asyncio
import errno
import io
import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from cloudpar_master.adapters.embedded.package_store import SqlitePackageStore
from cloudpar_master.server import blob_routes
from cloudpar_master.server.account_shares import Shares
from cloudpar_master.server.blob_routes import PART_BYTES
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello
from support.asgi import Exchange

from .dialing import dialing, until
from .served import Served, start_tasks

PARTS = 40
BODY = bytes(PARTS * PART_BYTES)
MANY = 20


class Recorded(Exchange):
    """A request that notes in a journal, under its name, each part that it sends or receives."""

    def __init__(self, name: str, journal: list[str], *request: Any) -> None:
        super().__init__(*request)
        self._name, self._journal = name, journal

    async def receive(self) -> Any:
        """Note a part of an upload."""
        if len(self._parts) > 1:
            self._journal.append(self._name)
        return await super().receive()

    async def send(self, message: Any) -> None:
        """Note a part of a download."""
        if message.get("body"):
            self._journal.append(self._name)
        await super().send(message)


def upload(served: Served, name: str, key: str, journal: list[str]) -> Recorded:
    link = served.assembly.blobs.put_link(key, len(BODY), zlib.crc32(BODY))
    return Recorded(name, journal, link.method, link.url, [BODY[:PART_BYTES]] * PARTS)


def download(served: Served, name: str, key: str, journal: list[str]) -> Recorded:
    link = served.assembly.blobs.get_link(key)
    return Recorded(name, journal, link.method, link.url)


async def answered(served: Served, requests: Sequence[Exchange]) -> None:
    """Let the held requests be answered at the same time."""
    for answer in await asyncio.gather(*(request.run(served.app) for request in requests)):
        assert answer.status in {200, 206}


@pytest.mark.anyio
@pytest.mark.parametrize("transfer", [upload, download])
async def test_many_transfers_of_one_account_delay_those_of_another_by_few_parts(served: Served, transfer: Any) -> None:
    journal: list[str] = []
    keys = [f"data/ann/{number}" for number in range(MANY)]
    if transfer is download:
        await answered(served, [upload(served, "", key, []) for key in [*keys, "data/bob/0"]])
    many = [transfer(served, "ann", key, journal) for key in keys]
    await answered(served, [*many, transfer(served, "bob", "data/bob/0", journal)])
    before = journal[: [index for index, name in enumerate(journal) if name == "bob"][-1]]
    assert before.count("ann") <= MANY + 2 * PARTS


@pytest.mark.anyio
@pytest.mark.parametrize("transfer", [upload, download])
async def test_many_transfers_delay_other_requests_by_few_parts(served: Served, transfer: Any) -> None:
    journal: list[str] = []
    keys = [f"data/{number}/0" for number in range(MANY)]
    if transfer is download:
        await answered(served, [upload(served, "", key, []) for key in keys])
    many = asyncio.ensure_future(answered(served, [transfer(served, "many", key, journal) for key in keys]))
    await until(lambda: len(journal) > MANY)
    for _ in range(5):
        before = len(journal)
        await served.ask("user", routes.HELLO, Hello())
        assert len(journal) - before <= 10
    assert not many.done()
    await many


@pytest.mark.anyio
async def test_a_download_that_the_client_does_not_read_holds_one_part(served: Served) -> None:
    path = served.assembly.blobs._path("data/ann/0")
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(64 * 1024 * 1024)
    target = served.assembly.blobs.get_link("data/ann/0").url.removeprefix("http://master.test")
    async with dialing(served.app) as dial:
        line = await dial()
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]  # asyncio's transports can do so
        line.writer.write(f"GET {target} HTTP/1.1\r\nHost: m\r\n\r\n".encode())
        await until(lambda: line.server.flow.write_paused)
        assert 0 < line.server.transport.get_write_buffer_size() <= PART_BYTES


@pytest.mark.anyio
async def test_a_download_whose_disk_fails_in_the_middle_closes_the_connection_with_one_line_in_the_log(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await answered(served, [upload(served, "", "data/ann/0", [])])
    target = served.assembly.blobs.get_link("data/ann/0").url.removeprefix("http://master.test")
    reads = 0

    class Failing(io.BufferedReader):
        def read(self, size: int | None = -1, /) -> bytes:
            nonlocal reads
            reads += 1
            if reads == 3:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return super().read(size)

    blobs = served.assembly.blobs
    monkeypatch.setattr(blobs, "open", lambda key: Failing(io.FileIO(blobs._path(key))))
    async with dialing(served.app) as dial:
        line = await dial()
        line.writer.write(f"GET {target} HTTP/1.1\r\nHost: m\r\n\r\n".encode())
        with suppress(ConnectionError):
            assert len(await line.reader.read()) < len(BODY)
        await until(lambda: not line.server._tasks)
    (record,) = caplog.records
    assert "check its disk" in record.getMessage()
    assert record.exc_info is None


@pytest.mark.anyio
async def test_a_link_counts_to_the_account_of_its_payload_unless_a_token_has_come(served: Served) -> None:
    shares = Shares(1)
    owned = await served.ask("user", routes.START_TASKS, start_tasks())
    key = f"results/{owned.package_id}/lease/0"
    account = blob_routes._owner(SqlitePackageStore(served.assembly.database), key)
    await answered(served, [upload(served, "", key, [])])
    target = served.assembly.blobs.get_link(key).url.removeprefix("http://master.test")
    request = f"GET {target} HTTP/1.1\r\nHost: m\r\nRange: bytes=0-0\r\n\r\n".encode()
    hello = b"POST /v1/hello HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer worker\r\nContent-Length: 0\r\n\r\n"
    async with dialing(served.app, shares=shares) as dial:
        first, second = await dial(), await dial()
        await first.talk(request, b"\r\n\r\n\0")
        assert shares._accounts == {first.server: account}
        await second.talk(hello, b"\r\n\r\n")
        await until(lambda: not second.server._tasks)
        await second.reader.read(10_000)
        await second.talk(request, b"\r\n\r\n\0")
        assert shares._accounts == {first.server: account}


@pytest.mark.anyio
async def test_an_account_whose_connections_are_all_stalled_delays_no_transfer_of_a_worker(served: Served) -> None:
    """Otherwise the worker would repeat the transfer, and other accounts on this worker would wait behind it."""
    shares, blobs = Shares(3), served.assembly.blobs
    package_id = (await served.ask("user", routes.START_TASKS, start_tasks())).package_id
    account = blob_routes._owner(SqlitePackageStore(served.assembly.database), f"results/{package_id}/lease/0")
    for key in (f"code/{account}/0", f"data/{account}/0"):
        await answered(served, [upload(served, "", key, [])])
    stalling = b"POST /v1/hello HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer user\r\nContent-Length: 1\r\n\r\n"
    links = [
        blobs.put_link(f"results/{package_id}/lease/0", 1, zlib.crc32(b"x")),
        blobs.get_link(f"code/{account}/0"),
        blobs.get_link(f"data/{account}/0"),
    ]
    async with dialing(served.app, shares=shares) as dial:
        for _ in range(3):
            (await dial()).writer.write(stalling)
        await until(lambda: shares._numbers[account] == 3)
        for link in links:
            line, target = await dial(), link.url.removeprefix("http://master.test")
            body = b"x" if link.method == "PUT" else b""
            head = f"{link.method} {target} HTTP/1.1\r\nHost: m\r\nContent-Length: {len(body)}\r\n\r\n"
            assert (await line.talk(head.encode() + body, b"\r\n")).split()[1] == b"200"
            assert shares._numbers[account] == 3


@pytest.mark.anyio
async def test_many_transfers_of_a_user_delay_those_of_the_same_account_on_a_worker_by_few_parts(
    served: Served,
) -> None:
    journal: list[str] = []
    package_id = (await served.ask("user", routes.START_TASKS, start_tasks())).package_id
    result = f"results/{package_id}/lease/0"
    account = blob_routes._owner(SqlitePackageStore(served.assembly.database), result)
    many = [upload(served, "user", f"data/{account}/{number}", journal) for number in range(MANY)]
    await answered(served, [*many, upload(served, "worker", result, journal)])
    before = journal[: [index for index, name in enumerate(journal) if name == "worker"][-1]]
    assert before.count("user") <= MANY + 2 * PARTS


def test_payloads_belong_to_the_account_that_their_key_or_package_names(served: Served) -> None:
    package_id = served.call("user", routes.START_TASKS, start_tasks()).package_id
    packages = SqlitePackageStore(served.assembly.database)
    spec = packages.spec(package_id)
    assert spec is not None
    for key, owner in (
        ("data/ann/1", "ann"), ("code/ann/1", "ann"), (f"results/{package_id}/lease/0", spec.account_id),
        ("results/unknown/lease/0", "-"), ("k", "-"), ("", "-"),
    ):  # fmt: skip
        assert blob_routes._owner(packages, key) == owner
