"""Malformed requests and slow clients on a socket."""

import os
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from cloudpar_protocol import codec, routes
from cloudpar_protocol.client_messages import Hello, PrepareUploads, Upload
from cloudpar_protocol.limits import BODY_BYTES, HOLD_S
from support.master_process import Master
from support.waiting import HANG_S

from .served import publication, retrieval, start_tasks

HELLO = b"POST /v1/hello HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer user\r\n"


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Master]:
    with Master(tmp_path_factory.mktemp("data"), stdin=True) as master:
        yield master
        code, errors = master.end()
        assert (code, errors) == (0, b"")


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize(
    "request_head",
    [
        HELLO + b"Content-Length: -1\r\n\r\n",
        HELLO + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        HELLO + b"Content-Length: x\r\n\r\n",
        HELLO + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HELLO + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HELLO + b"no colon\r\n\r\n",
        b"POST /v1/hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /\xff HTTP/1.1\r\nHost: m\r\n\r\n",
        b"GET /%ff%00 HTTP/1.1\r\nHost: m\r\n\r\n",
        b"GET /v1/%00?a=%ff&%zz HTTP/1.1\r\nHost: m\r\n\r\n",
        b"PUT /blobs/a%00b?expires=1&signature=%ff HTTP/1.1\r\nHost: m\r\nContent-Length: 0\r\n\r\n",
        b"GET /blobs/" + b"a" * 60_000 + b"?expires=1 HTTP/1.1\r\nHost: m\r\n\r\n",
        b"POST /v1/hello HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer \xff\xfe\r\nContent-Length: 0\r\n\r\n",
        b"CONNECT m:80 HTTP/1.1\r\nHost: m\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: m\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        HELLO + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 17 + b"\r\n",
        HELLO + b"name: value\r\n folded\r\n\r\n",
        HELLO + b"a:\r\n" * 100 + b"Content-Length: 0\r\n\r\n",
        HELLO + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"a:\r\n" * 100 + b"\r\n",
    ],
    ids=range(20),
)
def test_a_malformed_request_is_refused(master: Master, request_head: bytes) -> None:
    assert 400 <= status(master.speak(request_head)) < 500
    assert master.call("user", routes.HELLO, Hello()).role == "user"


def test_a_body_that_is_too_large_is_refused_before_its_end(master: Master) -> None:
    with socket.create_connection(("127.0.0.1", master.port), timeout=HANG_S) as peer:
        peer.sendall(HELLO + f"Content-Length: {10**9}\r\n\r\n".encode())
        peer.sendall(b"x" * (BODY_BYTES + 65536))
        assert status(peer.recv(65536)) == 413


def test_a_slow_client_does_not_delay_others(master: Master) -> None:
    body = codec.encode(Hello())
    payload = os.urandom(100_000)
    upload = Upload(kind="data", size=len(payload), crc32=zlib.crc32(payload))
    (prepared,) = master.call("user", routes.PREPARE_UPLOADS, PrepareUploads(uploads=[upload])).uploads
    assert prepared.link is not None
    target = urlsplit(prepared.link.url)
    with (
        socket.create_connection(("127.0.0.1", master.port), timeout=HANG_S) as caller,
        socket.create_connection(("127.0.0.1", master.port), timeout=HANG_S) as uploader,
    ):
        caller.sendall(HELLO + f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:1])
        head = f"PUT {target.path}?{target.query} HTTP/1.1\r\nHost: m\r\nContent-Length: {len(payload)}\r\n\r\n"
        uploader.sendall(head.encode() + payload[:50_000])
        assert master.call("user", routes.HELLO, Hello()).role == "user"
        caller.sendall(body[1:])
        assert status(caller.recv(65536)) == 200
        uploader.sendall(payload[50_000:])
        assert status(uploader.recv(65536)) == 200


def test_an_upload_that_breaks_off_leaves_nothing(master: Master) -> None:
    upload = Upload(kind="data", size=4, crc32=zlib.crc32(b"data"))
    (prepared,) = master.call("user", routes.PREPARE_UPLOADS, PrepareUploads(uploads=[upload])).uploads
    assert prepared.link is not None
    target = urlsplit(prepared.link.url)
    head = f"PUT {target.path}?{target.query} HTTP/1.1\r\nHost: m\r\nContent-Length: 4\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", master.port)) as peer:
        peer.sendall(head + b"da")
    assert status(master.speak(head.replace(b"Host: m", b"Host: m\r\nConnection: close") + b"data")) == 200


def test_a_master_has_one_thread_and_serves_all_calls_on_one_connection(tmp_path: Path) -> None:
    with Master(tmp_path, stdin=True) as master:
        process = psutil.Process(master.process.pid)
        held = [
            master.send("worker", routes.RETRIEVE_TASKS, retrieval(str(number), hold_s=HOLD_S)) for number in range(30)
        ]
        connection = master.connect()
        done = 0
        master.call("user", routes.START_TASKS, start_tasks(tasks=30))
        for way in held:
            reply = codec.decode(way.getresponse().read(), routes.RETRIEVE_TASKS.reply)
            way.close()
            for lease in reply.leases:
                body = codec.encode(publication(lease))
                headers = {"Authorization": "Bearer worker"}
                connection.request("POST", routes.PUBLISH_RESULTS.path, body, headers)
                assert connection.getresponse().read()
                done += lease.end - lease.start
                assert process.num_threads() == 1
            if done == 30:
                break
        connection.close()
        for way in held:
            way.close()
        assert done == 30
        assert master.end() == (0, b"")
