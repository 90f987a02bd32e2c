from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol

from cloudpar_protocol.payloads import Link, Parts


class BlobStore(Protocol):
    """Stores payloads. The master's services only hand out links; the bytes never pass through the services.

    A link is valid for one key and one method, for LINK_S seconds; every other use is refused with a 4xx status. The
    exception is a link to a file, which the store makes only for a caller that can open the master's files. The store
    cannot check how the caller uses such a link.

    Attributes:
        takes_parts: Whether this store accepts uploads in parts.
    """

    takes_parts: ClassVar[bool]

    def put_link(self, key: str, size: int, crc32: int) -> Link:
        """Make a link for an upload of this size and CRC-32.

        The same upload may be repeated; an upload of different bytes is refused.
        """

    def part_links(self, key: str, size: int, parts_crc32: Sequence[int], upload_id: str | None, /) -> Parts | None:
        """Make links for an upload in parts, as an alternative to `put_link`; None without `takes_parts`.

        Without `upload_id`, a new upload starts; with it, the links are new links for that upload. The store removes
        uploads that are never completed.
        """

    def get_link(self, key: str) -> Link:
        """Make a link for reading a blob, whole or in byte ranges."""

    def exists(self, key: str, *, promise: bool = False) -> bool:
        """Whether the blob exists. The call counts as a use, so that the blob is not soon removed as unused.

        Set `promise` if the master will answer a client that no upload of this task code is needed. The store then
        keeps the task code until the client has started its package.
        """

    def abandon(self, prefix: str) -> None:
        """Give up all blobs whose keys start with `prefix`: no package needs them.

        The store removes them now, or later by its own rules.
        """

    def delete(self, key: str) -> None:
        """Remove a blob or, if the key ends with '/', all blobs whose keys start with it. A missing blob is ignored."""

    def uploads(self, account_id: str) -> Iterator[tuple[str, int]]:
        """Yield the key and the size of each upload of task code and task data that is stored for an account.

        An incomplete upload in parts counts, too, with the largest size that it can have.
        """

    def free_bytes(self) -> int | None:
        """Return how many more bytes the store may take without using its reserve; None if it is never full."""
