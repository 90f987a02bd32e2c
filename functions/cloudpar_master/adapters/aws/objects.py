from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from . import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from types_boto3_s3 import S3Client


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
        """Read an object; return None if it does not exist."""
        try:
            return self._client().get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except ClientError as error:
            # If the role has no permission to list the bucket, S3 answers "forbidden" for a missing key.
            if errors.code(error) in {"NoSuchKey", "403", "AccessDenied"}:
                return None
            raise
