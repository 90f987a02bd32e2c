from collections.abc import Sequence
from typing import Protocol

from cloudpar_protocol.payloads import Link, Parts


class BlobStore(Protocol):
    """Payloads. The master only hands out links; bytes never pass its services.

    A link is good for one key and one method, for LINK_S seconds; every other use is refused with a 4xx status.
    """

    def put_link(self, key: str, size: int, crc32: int) -> Link:
        """A link for one upload of exactly these bytes. The same upload again succeeds; another is refused."""
        ...

    def part_links(self, key: str, size: int, parts_crc32: Sequence[int], upload_id: str | None, /) -> Parts | None:
        """Links for the same upload in parts; None: this store takes it by `put_link` only.

        With `upload_id`, the links are for the upload of that name. The store removes uploads that are never completed.
        """
        ...

    def get_link(self, key: str) -> Link:
        """A link for reading, whole or in byte ranges."""
        ...

    def exists(self, key: str) -> bool:
        """Whether the blob is there; also keeps it from being swept for its age."""
        ...

    def abandon(self, prefix: str) -> None:
        """Remove what lies there, now or by the store's own rules: no package needs it."""
        ...

    def delete(self, key: str) -> None:
        """Remove a blob, or, if the key ends with '/', every blob whose key starts so. None is as good as removed."""
        ...
