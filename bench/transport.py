"""`python -m bench.transport` compares the project's HTTP client with http.client and urllib3 on this machine.

All three keep their connections open, and make the same requests in turn. For the project's client, the figures are
times. For the other two they are medians of ratios: the time of http.client or urllib3, divided by the time of the
project's client in the same round. A ratio over 1 means that the project's client is faster.
"""

import http.client
import multiprocessing
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from statistics import median
from typing import Final, NamedTuple

import urllib3
from rich.console import Console
from rich.table import Table

from cloudpar_protocol.transport.connection_pool import PIECE_BYTES, ConnectionPool
from cloudpar_protocol.transport.socket_pool import Timeouts

ROUNDS: Final = 15
TIMEOUTS: Final = Timeouts(30.0, 30.0)
KB, MB = 1 << 10, 1 << 20


class Case(NamedTuple):
    """Requests of one kind: the bytes sent and received by each, and how many requests one round makes."""

    name: str
    method: str
    sent: int
    received: int
    requests: int


CASES: Final = (
    Case("call, 1 KB both ways", "POST", KB, KB, 200),
    Case("upload of 1 MB", "PUT", MB, 0, 20),
    Case("download of 1 MB", "GET", 0, MB, 20),
    Case("upload of 64 MB", "PUT", 64 * MB, 0, 1),
    Case("download of 64 MB", "GET", 0, 64 * MB, 1),
)


class Cost(NamedTuple):
    """The wall time and the processor time that one round of requests costs the client, in seconds."""

    wall_s: float
    processor_s: float


def serve(listening: socket.socket) -> None:
    """Accept connections without end, and answer their requests. The path of a request is the size of the answer."""
    while True:
        connection, _ = listening.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection: socket.socket) -> None:
    """Read each request of a connection completely, and answer it, until the client closes the connection."""
    scratch, body = bytearray(MB), bytes(max(case.received for case in CASES))
    while True:
        read = bytearray()
        while (end := read.find(b"\r\n\r\n")) < 0:
            part = connection.recv(1 << 16)
            if not part:
                return
            read += part
        head = bytes(read[:end]).lower()
        size = int(head.partition(b"/")[2].split()[0])
        left = int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0) - (len(read) - end - 4)
        while left:
            left -= connection.recv_into(scratch, min(left, len(scratch)))
        connection.sendall(b"HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Length: %d\r\n\r\n" % size)
        connection.sendall(memoryview(body)[:size])


def clients(port: int) -> dict[str, Callable[[Case, bytes], bytes]]:
    """Return a function for each client, by its name, which makes one request and returns the body of the answer."""
    ours = ConnectionPool(f"http://127.0.0.1:{port}")
    plain = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUTS.answer_s)
    plain.connect()
    assert plain.sock is not None
    plain.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    general = urllib3.PoolManager(retries=False, blocksize=PIECE_BYTES)

    def by_ours(case: Case, body: bytes) -> bytes:
        length = {"Content-Length": str(len(body))} if body else {}
        return ours.request(case.method, f"/{case.received}", [body], TIMEOUTS, headers=length).body

    def by_http_client(case: Case, body: bytes) -> bytes:
        # Send the body in pieces, as the project's client does: a socket's time limit applies to all that one call
        # sends.
        headers = {"Content-Length": str(len(body))} if body else {}
        plain.request(case.method, f"/{case.received}", body=pieces(body), headers=headers)
        return plain.getresponse().read()

    def by_urllib3(case: Case, body: bytes) -> bytes:
        headers = {"Content-Length": str(len(body))} if body else {}
        url = f"http://127.0.0.1:{port}/{case.received}"
        return general.request(case.method, url, body=pieces(body), headers=headers).data  # type: ignore[arg-type]

    return {"ours": by_ours, "http.client": by_http_client, "urllib3": by_urllib3}


def pieces(body: bytes) -> list[memoryview] | None:
    """Return the pieces in which the project's client sends a body; None for an empty body."""
    view = memoryview(body)
    return [view[start : start + PIECE_BYTES] for start in range(0, len(view), PIECE_BYTES)] or None


def measure(request: Callable[[Case, bytes], bytes], case: Case, body: bytes) -> Cost:
    """Make one round of requests with one client."""
    wall_s, processor_s = time.perf_counter(), time.process_time()
    for _ in range(case.requests):
        assert len(request(case, body)) == case.received
    return Cost(time.perf_counter() - wall_s, time.process_time() - processor_s)


def main() -> None:
    """Measure, and print."""
    table = Table("request", title=f"medians of {ROUNDS} ratios to the product's client: time, processor time")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = multiprocessing.get_context("fork").Process(target=serve, args=(listening,), daemon=True)
        server.start()
        by_name = clients(listening.getsockname()[1])
        for name in by_name:
            table.add_column("ours, ms" if name == "ours" else name, justify="right")
        for case in CASES:
            body = bytes(case.sent)
            rounds = [{name: measure(request, case, body) for name, request in by_name.items()} for _ in range(ROUNDS)]
            table.add_row(case.name, *(cell(name, case, rounds) for name in by_name))
        server.terminate()
        with suppress(OSError):
            server.join()
    Console().print(table)


def cell(name: str, case: Case, rounds: list[dict[str, Cost]]) -> str:
    """Return the times of one request for the project's client, or the ratios of another client."""
    costs = [each[name] for each in rounds]
    if name == "ours":
        wall, processor = (1000 * median(cost[i] for cost in costs) / case.requests for i in (0, 1))
        return f"{wall:.3g}, {processor:.3g}"
    ratios = [median(cost[i] / each["ours"][i] for cost, each in zip(costs, rounds, strict=True)) for i in (0, 1)]
    return f"{ratios[0]:.2f}, {ratios[1]:.2f}"


if __name__ == "__main__":
    main()
