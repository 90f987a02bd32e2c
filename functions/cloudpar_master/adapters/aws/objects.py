from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from cloudpar_protocol.errors import Unavailable

from . import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from types_boto3_s3 import S3Client


RETRY_S = 5.0
"""If the master may not read an object, the caller tries again after this many seconds."""

MISSING, FORBIDDEN = {"NoSuchKey", "404"}, {"AccessDenied", "403"}
"""S3's names of the errors for an object that does not exist, and for one that the caller may not read. A role that may
not list the bucket gets the second error for an object that does not exist."""


class Objects:
    """Objects in the S3 bucket, for data that is too large for a row of a table.

    The client is made at its first use.
    """

    def __init__(self, client: "Callable[[], S3Client]", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, key: str, body: bytes) -> None:
        """Store an object. It replaces an earlier object with the same key."""
        self._client().put_object(Bucket=self._bucket, Key=key, Body=body)

    def delete(self, key: str) -> None:
        """Remove an object. An object that does not exist counts as removed."""
        self._client().delete_object(Bucket=self._bucket, Key=key)

    def get(self, key: str) -> bytes | None:
        """Read an object; return None if it does not exist.

        Raises:
            Unavailable: The master may not read the object now. An object that exists must not count as missing.
                Otherwise the package would fail, or a client would acknowledge the package, and the master would then
                delete its results.
        """
        try:
            return self._client().get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except ClientError as error:
            if errors.code(error) in MISSING or (errors.code(error) in FORBIDDEN and self._is_missing(key)):
                return None
            if errors.code(error) in FORBIDDEN:
                raise _forbidden(key) from error
            raise

    def _is_missing(self, key: str) -> bool:
        """Whether the bucket's list lacks an object.

        Raises:
            Unavailable: The master may not list the bucket.
        """
        try:
            listed = self._client().list_objects_v2(Bucket=self._bucket, Prefix=key, MaxKeys=1)
        except ClientError as error:
            if errors.code(error) in FORBIDDEN:
                raise _forbidden(key) from error
            raise
        return all(entry["Key"] != key for entry in listed.get("Contents", []))


def _forbidden(key: str) -> Unavailable:
    return Unavailable(
        f"the master may not read {key!r}, or not see whether it exists: the operator should check the bucket's policy "
        "and its key; the results are not lost",
        retry_after_s=RETRY_S,
    )
