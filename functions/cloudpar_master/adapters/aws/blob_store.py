import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from cloudpar_master.ports import BlobStore, Clock
from cloudpar_protocol.limits import BLOB_BYTES, LINK_S
from cloudpar_protocol.parts import bounds
from cloudpar_protocol.payloads import Link, Parts

from . import errors
from .backoff import attempts, batches

if TYPE_CHECKING:
    from collections.abc import Callable

    from types_boto3_s3 import S3Client

FRESH_S = 20 * 86400.0
"""The bucket removes task code 60 days after it was written. If a client is about to use code that was written more
than FRESH_S seconds ago, `exists` writes the code again. Otherwise the bucket could remove the code while a package
needs it."""

HEADERS = {
    "ContentLength": "Content-Length",
    "IfNoneMatch": "If-None-Match",
    "ChecksumCRC32": "x-amz-checksum-crc32",
    "MpuObjectSize": "x-amz-mp-object-size",
}
"""For each signed value of a link: the value's name in botocore, and the HTTP header that contains the value."""

MISSING = {"404", "NoSuchKey", "NotFound", "403", "AccessDenied", "Forbidden"}
DELETE_BATCH = 1000


class S3BlobStore(BlobStore):
    """Blobs in one bucket, reached through links that S3 itself checks. The S3 client is made at its first use."""

    takes_parts = True

    def __init__(self, client: "Callable[[], S3Client]", bucket: str, clock: Clock) -> None:
        self._client = client
        self._bucket = bucket
        self._clock = clock

    def put_link(self, key: str, size: int, crc32: int) -> Link:
        """See the port. If the key exists, S3 answers the upload with status 412.

        The uploader counts this answer as success, because a key always names the same payload.
        """
        signed = {"ContentLength": size, "ChecksumCRC32": _base64(crc32), "IfNoneMatch": "*"}
        return Link("PUT", self._presign("put_object", key, signed), _headers(signed))

    def part_links(self, key: str, size: int, parts_crc32: Sequence[int], upload_id: str | None, /) -> Parts | None:
        """See the port. The bucket's rules abort an upload that is not completed within a day.

        S3 checks the size and the checksum of each part. When S3 combines the parts, it checks the total size, so that
        no part is missing. It also checks that the key does not exist yet.
        """
        if upload_id is None:
            answer = self._client().create_multipart_upload(Bucket=self._bucket, Key=key, ChecksumAlgorithm="CRC32")
            upload_id = answer["UploadId"]
        links = [
            self._part_link(key, upload_id, number, end - start, checksum)
            for number, ((start, end), checksum) in enumerate(zip(bounds(size), parts_crc32, strict=True), start=1)
        ]
        signed = {"MpuObjectSize": size, "IfNoneMatch": "*"}
        url = self._presign("complete_multipart_upload", key, {"UploadId": upload_id, **signed})
        return Parts(upload_id=upload_id, links=links, complete=Link("POST", url, _headers(signed)))

    def _part_link(self, key: str, upload_id: str, number: int, size: int, crc32: int) -> Link:
        signed = {"ContentLength": size, "ChecksumCRC32": _base64(crc32)}
        url = self._presign("upload_part", key, {"UploadId": upload_id, "PartNumber": number, **signed})
        return Link("PUT", url, _headers(signed))

    def get_link(self, key: str) -> Link:
        return Link("GET", self._presign("get_object", key, {}))

    def _presign(self, call: str, key: str, params: Mapping[str, object]) -> str:
        named = {"Bucket": self._bucket, "Key": key, **params}
        return self._client().generate_presigned_url(call, Params=named, ExpiresIn=LINK_S)

    def exists(self, key: str, *, promise: bool = False) -> bool:
        """See the port. S3 removes no blob that was written lately, so `promise` needs no work.

        The bucket removes a blob some time after its last write. So this method copies an old blob onto itself, which
        counts as a write.

        If a blob is missing, S3 answers "forbidden" to a role that may read blobs but not list them. So after this
        answer the blob counts as missing. If it exists nevertheless, no harm is done: the client uploads it again, and
        S3 refuses the upload.
        """
        del promise
        try:
            head = self._client().head_object(Bucket=self._bucket, Key=key)
            if self._clock.now() - head["LastModified"].timestamp() > FRESH_S:
                self._client().copy_object(
                    Bucket=self._bucket,
                    Key=key,
                    CopySource={"Bucket": self._bucket, "Key": key},
                    MetadataDirective="REPLACE",
                )
        except ClientError as error:
            if errors.code(error) in MISSING:
                return False
            raise
        return True

    def abandon(self, prefix: str) -> None:
        """See the port. The bucket's lifecycle rules remove the blobs."""

    def uploads(self, account_id: str) -> Iterator[tuple[str, int]]:
        """See the port. S3 does not list the sizes of uploads in parts, so each counts as the largest possible blob."""
        for prefix in (f"code/{account_id}/", f"data/{account_id}/"):
            whole = self._client().get_paginator("list_objects_v2")
            for page in whole.paginate(Bucket=self._bucket, Prefix=prefix):
                yield from ((entry["Key"], entry["Size"]) for entry in page.get("Contents", []))
            in_parts = self._client().get_paginator("list_multipart_uploads")
            for started in in_parts.paginate(Bucket=self._bucket, Prefix=prefix):
                yield from ((entry["Key"], BLOB_BYTES) for entry in started.get("Uploads", []))

    def free_bytes(self) -> None:
        """See the port. S3 has no limit."""

    def delete(self, key: str) -> None:
        if not key:
            return
        if not key.endswith("/"):
            self._client().delete_object(Bucket=self._bucket, Key=key)
            return
        pages = self._client().get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=key)
        for batch in batches([entry["Key"] for page in pages for entry in page.get("Contents", [])], DELETE_BATCH):
            self._delete_all(list(batch))

    def _delete_all(self, keys: list[str]) -> None:
        for _ in attempts():
            wanted: Any = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
            failed = self._client().delete_objects(Bucket=self._bucket, Delete=wanted).get("Errors", [])
            keys = [error["Key"] for error in failed]
            if not keys:
                return
        raise errors.busy("the blob store")


def _base64(crc32: int) -> str:
    return base64.b64encode(crc32.to_bytes(4)).decode()


def _headers(signed: Mapping[str, object]) -> dict[str, str]:
    """Return the headers that the user of a link must send, since the link's signature covers them."""
    return {HEADERS[name]: str(value) for name, value in signed.items()}
