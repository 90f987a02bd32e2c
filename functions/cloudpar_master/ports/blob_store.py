from typing import Protocol

from cloudpar_protocol.payloads import Link


class BlobStore(Protocol):
    """Payloads. The master only hands out links; bytes never pass its services."""

    def put_link(self, key: str, size: int, crc32: int) -> Link:
        """A link for one upload of exactly these bytes. The same upload again succeeds; another is refused."""
        ...

    def get_link(self, key: str) -> Link:
        """A link for reading, whole or in byte ranges."""
        ...

    def exists(self, key: str) -> bool:
        """Whether the blob is there; also keeps it from being swept for its age."""
        ...

    def delete(self, prefix: str) -> None:
        """Remove every blob whose key starts so."""
        ...
