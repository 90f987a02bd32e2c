"""The URLs of links, which a master of one address writes without that address.

A proxy, a forwarded port or another host name gives the master an address that it does not know. So a client or a
worker says by a header of each call that it understands relative links, and resolves them against the endpoint that it
uses. A master answers a call without this header with absolute links, as releases up to 0.2.0 expect them.
"""

from typing import Final
from urllib.parse import urlsplit

HEADER: Final = "Cloudpar-Links"
RELATIVE: Final = "relative"
FILES: Final = "files"
"""Relative links, and links to files where the master has them: see `payload_folder`."""


def resolve(url: str, endpoint: str) -> str:
    """Return the URL to request: a relative one follows the path of the endpoint, an absolute one stays.

    >>> resolve("/blobs/k?signature=s", "https://lab.example/pool/")
    'https://lab.example/pool/blobs/k?signature=s'
    >>> resolve("https://bucket.example/k", "https://lab.example/pool")
    'https://bucket.example/k'
    """
    return endpoint.rstrip("/") + url if url.startswith("/") else url


def address(url: str) -> str:
    """Return scheme, host and port of a URL: a message may name these, but not the signature behind them.

    >>> address("http://127.0.0.1:9000/blobs/k?signature=s")
    'http://127.0.0.1:9000'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
