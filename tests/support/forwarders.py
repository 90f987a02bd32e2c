"""Addresses of a master beside its own: a forwarded port, and a reverse proxy that terminates TLS."""

import contextlib
import datetime as dt
import http.client
import ipaddress
import select
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PREFIX = "/lab/pool"

_PASSED: Counter[int] = Counter()
"""The bytes that passed each port, in both directions."""


def passed(endpoint: str) -> int:
    """Return how many bytes passed an endpoint. On this machine traffic could also use the master's own address."""
    return _PASSED[urlsplit(endpoint).port or 0]


class _Port(ThreadingTCPServer):
    daemon_threads = True
    target: tuple[str, int]


class _Forward(BaseRequestHandler):
    """Passes on the bytes of one connection in both directions."""

    server: _Port

    def handle(self) -> None:
        near: socket.socket = self.request
        with contextlib.suppress(OSError), socket.create_connection(self.server.target) as far:
            while True:
                for ready in select.select([near, far], [], [])[0]:
                    part = ready.recv(1 << 18)
                    if not part:
                        return
                    (far if ready is near else near).sendall(part)
                    _PASSED[self.server.server_address[1]] += len(part)


@contextmanager
def forwarded_port(endpoint: str) -> Iterator[str]:
    """Start a port that leads to a master, as `ssh -L` or a container's published port does. Yields its endpoint."""
    target = urlsplit(endpoint)
    with _Port(("127.0.0.1", 0), _Forward) as server:
        server.target = (target.hostname or "", target.port or 80)
        with serving(server):
            yield f"http://127.0.0.1:{server.server_address[1]}"


class Proxy(ThreadingHTTPServer):
    """Passes HTTP requests to a master on this machine."""

    daemon_threads = True
    prefix = ""
    refused: Collection[str] = ()
    largest_bytes: int | None = None

    def __init__(self, endpoint: str) -> None:
        super().__init__(("127.0.0.1", 0), _Pass)
        self.target = urlsplit(endpoint).netloc

    def arrives(self, path: str, size: int) -> int:
        """Return how many bytes of an answer the client gets."""
        return size


class _Pass(BaseHTTPRequestHandler):
    """Sends each request of a connection to the master, without the prefix, which the master does not know."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Proxy

    def handle(self) -> None:
        # The client may have closed the connection, or the master may have been killed while it answered.
        with contextlib.suppress(OSError, http.client.HTTPException):
            super().handle()

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if not self.path.startswith(f"{self.server.prefix}/") or (
            self.command in self.server.refused and self.path.startswith("/blobs/")
        ):
            self.send_error(502)
            return
        if self.server.largest_bytes is not None and len(body) > self.server.largest_bytes:
            self.send_error(413)
            return
        master = http.client.HTTPConnection(self.server.target, timeout=60)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            master.request(self.command, self.path.removeprefix(self.server.prefix), body, headers)
            answer = master.getresponse()
            content = answer.read()
        finally:
            master.close()
        _PASSED[self.server.server_port] += len(body) + len(content)
        kept = ("Content-Type", "Content-Range", "Retry-After")
        lines = [f"{name}: {answer.headers[name]}" for name in kept if answer.headers[name]]
        head = [f"HTTP/1.1 {answer.status} {answer.reason}", *lines, f"Content-Length: {len(content)}", "", ""]
        whole = "\r\n".join(head).encode() + content
        arrives = self.server.arrives(self.path, len(whole))
        self.wfile.write(whole[:arrives])
        self.close_connection |= arrives < len(whole)

    do_GET = do_POST = do_PUT = _pass  # noqa: N815 - the library calls these names

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def reverse_proxy(endpoint: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Start a proxy that terminates TLS and serves a master under a prefix. Yields its endpoint and certificate."""
    certificate, key = _certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Proxy(endpoint) as server:
        server.prefix = PREFIX
        server.socket = context.wrap_socket(server.socket, server_side=True)
        with serving(server):
            yield f"https://127.0.0.1:{server.server_address[1]}{PREFIX}", certificate


@contextmanager
def half_way(endpoint: str, *refused: str) -> Iterator[str]:
    """Start a proxy that refuses payloads by these HTTP methods and passes all calls. Yields its endpoint."""
    with Proxy(endpoint) as server:
        server.refused = refused
        with serving(server):
            yield f"http://127.0.0.1:{server.server_address[1]}"


@contextmanager
def limited_proxy(endpoint: str, largest_bytes: int) -> Iterator[str]:
    """Start a proxy that refuses larger bodies with status 413, as nginx does. Yields its endpoint."""
    with Proxy(endpoint) as server:
        server.largest_bytes = largest_bytes
        with serving(server):
            yield f"http://127.0.0.1:{server.server_address[1]}"


@contextmanager
def serving(server: "_Port | Proxy") -> Iterator[None]:
    """Serve requests until the end of the block."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


def _certificate(folder: Path) -> tuple[Path, Path]:
    """Write a self-signed certificate for 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain)
    )
    return paths
