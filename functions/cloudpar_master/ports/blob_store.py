from typing import Protocol

from cloudpar_protocol.payloads import Link


class BlobStore(Protocol):
    """Payloads. The master only hands out links; bytes never pass its services.

    A link is good for one key and one method, for LINK_S seconds; every other use is refused with a 4xx status.
    """

    def put_link(self, key: str, size: int, crc32: int) -> Link:
        """A link for one upload of exactly these bytes. The same upload again succeeds; another is refused."""
        ...

    def get_link(self, key: str) -> Link:
        """A link for reading, whole or in byte ranges."""
        ...

    def exists(self, key: str) -> bool:
        """Whether the blob is there; also keeps it from being swept for its age."""
        ...

    def delete(self, key: str) -> None:
        """Remove a blob, or, if the key ends with '/', every blob whose key starts so. None is as good as removed."""
        ...
