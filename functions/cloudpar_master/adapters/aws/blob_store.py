import base64
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from cloudpar_master.ports import Clock
from cloudpar_protocol.limits import LINK_S
from cloudpar_protocol.payloads import Link

from . import trouble
from .backoff import attempts, batches

if TYPE_CHECKING:
    from collections.abc import Callable

    from types_boto3_s3 import S3Client

FRESH_S = 20 * 86400.0
"""The bucket sweeps task code after 60 days. What is older than this is written anew when somebody asks for it."""

MISSING = {"404", "NoSuchKey", "NotFound", "403", "AccessDenied", "Forbidden"}
DELETE_BATCH = 1000


class S3BlobStore:
    """Blobs in one bucket, reached through links that S3 itself checks. The client is made when it is needed."""

    def __init__(self, client: "Callable[[], S3Client]", bucket: str, clock: Clock) -> None:
        self._client = client
        self._bucket = bucket
        self._clock = clock

    def put_link(self, key: str, size: int, crc32: int) -> Link:
        """See the port. S3 answers 412 to every second upload; a key is its uploader's own, so that is success."""
        checksum = base64.b64encode(crc32.to_bytes(4)).decode()
        url = self._client().generate_presigned_url(
            "put_object",
            Params={
                "Bucket": self._bucket,
                "Key": key,
                "ContentLength": size,
                "ChecksumCRC32": checksum,
                "IfNoneMatch": "*",
            },
            ExpiresIn=LINK_S,
        )
        headers = {"Content-Length": str(size), "If-None-Match": "*", "x-amz-checksum-crc32": checksum}
        return Link("PUT", url, headers)

    def get_link(self, key: str) -> Link:
        """See the port."""
        params = {"Bucket": self._bucket, "Key": key}
        return Link("GET", self._client().generate_presigned_url("get_object", Params=params, ExpiresIn=LINK_S))

    def exists(self, key: str) -> bool:
        """See the port. An old blob is copied onto itself, since the bucket's rules count from the last write.

        To whom may read blobs but not list them, S3 says of a missing one that it is forbidden. Taking that for missing
        harms nobody: the upload of one that is there is refused as a second one.
        """
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
            if trouble.code(error) in MISSING:
                return False
            raise
        return True

    def delete(self, key: str) -> None:
        """See the port."""
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
        raise trouble.busy("the blob store")
