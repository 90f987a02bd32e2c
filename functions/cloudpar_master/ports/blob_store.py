from collections.abc import Sequence
from typing import Protocol

from cloudpar_protocol.payloads import Link, Parts


class BlobStore(Protocol):
    """Stores payloads. The master only hands out links; bytes never pass its services.

    A link is valid for one key and one method, for LINK_S seconds; every other use is refused with a 4xx status.
    """

    def put_link(self, key: str, size: int, crc32: int) -> Link:
        """Make a link for one upload of exactly these bytes. Repeating it succeeds; other bytes are refused."""
        ...

    def part_links(self, key: str, size: int, parts_crc32: Sequence[int], upload_id: str | None, /) -> Parts | None:
        """Make links for the same upload in parts; None if this store takes uploads by `put_link` only.

        With `upload_id`, they are new links for the upload of that id. The store removes uploads that are never
        completed.
        """
        ...

    def get_link(self, key: str) -> Link:
        """Make a link for reading a blob, whole or in byte ranges."""
        ...

    def exists(self, key: str) -> bool:
        """Whether the blob exists. The call counts as a use, so that the blob is not soon removed as unused."""
        ...

    def abandon(self, prefix: str) -> None:
        """Remove all blobs whose keys start with `prefix`, which no package needs, now or by the store's own rules."""
        ...

    def delete(self, key: str) -> None:
        """Remove a blob; if the key ends with '/', all blobs whose keys start with it. If there is none, do nothing."""
        ...
