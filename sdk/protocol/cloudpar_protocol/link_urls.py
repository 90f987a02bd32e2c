"""Relative links: URLs without the master's address.

Behind a proxy, a forwarded port or a second host name, a master does not know the address that its callers use. So
clients and workers say in a header of each call that they understand relative links, and resolve these against their
endpoint. A call without this header gets absolute links, as releases up to 0.2.0 expect.
"""

from typing import Final
from urllib.parse import urlsplit

HEADER: Final = "Cloudpar-Links"
RELATIVE: Final = "relative"
FILES: Final = "files"
"""The header value of a caller that accepts relative links, and also links to files: see `payload_folder`."""
OWN_MASTER: Final = "CLOUDPAR_OWN_MASTER"
"""The environment variable that a pool sets for the master that it starts. Only such a master makes links to files,
because all its callers belong to one user. The master's configuration has no field for this, because a master of an
earlier release would refuse a field that it does not know."""


def resolve(url: str, endpoint: str) -> str:
    """Return the URL to request: a relative link is appended to the endpoint, an absolute link stays.

    >>> resolve("/blobs/k?signature=s", "https://lab.example/pool/")
    'https://lab.example/pool/blobs/k?signature=s'
    >>> resolve("https://bucket.example/k", "https://lab.example/pool")
    'https://bucket.example/k'
    """
    return endpoint.rstrip("/") + url if url.startswith("/") else url


def address(url: str) -> str:
    """Return scheme, host and port of a URL. Error messages may show these, but not the signature in the rest.

    >>> address("http://127.0.0.1:9000/blobs/k?signature=s")
    'http://127.0.0.1:9000'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
