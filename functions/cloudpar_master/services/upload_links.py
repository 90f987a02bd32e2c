from cloudpar_master.ports import BlobStore
from cloudpar_protocol.client_messages import Upload
from cloudpar_protocol.errors import BadRequest
from cloudpar_protocol.limits import PART_BYTES
from cloudpar_protocol.payloads import Link, Parts
from cloudpar_protocol.worker_messages import PrepareResult

PART_LINKS = 500
"""How many links to parts one answer has at most. On AWS a link has up to 2 KB, and making a link takes some
milliseconds."""


class UploadLinks:
    """Makes the links for the uploads of one request."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._room = PART_LINKS

    def make(self, key: str, upload: Upload | PrepareResult) -> tuple[Link, Parts | None]:
        """Make the links for a payload: call `may_take_parts`, and then `links`."""
        return self.links(key, upload, in_parts=self.may_take_parts(upload))

    def may_take_parts(self, upload: Upload | PrepareResult) -> bool:
        """Whether the sender, the store and the answer's size permit an upload in parts. Starts no upload.

        Raises:
            BadRequest: The sender gives checksums of parts, but not exactly one for each part.
        """
        count = len(upload.parts_crc32)
        if not count:
            return False
        if count != -(-upload.size // PART_BYTES):
            raise BadRequest(
                f"{count} checksums of parts of {upload.size:,} bytes: send one for each {PART_BYTES:,} bytes"
            )
        if count > self._room or not self._blobs.takes_parts:
            return False
        self._room -= count
        return True

    def links(self, key: str, upload: Upload | PrepareResult, *, in_parts: bool) -> tuple[Link, Parts | None]:
        """Make a link for a payload and, if `in_parts`, also links for its parts."""
        link = self._blobs.put_link(key, upload.size, upload.crc32)
        if not in_parts:
            return link, None
        return link, self._blobs.part_links(key, upload.size, upload.parts_crc32, upload.upload_id)
