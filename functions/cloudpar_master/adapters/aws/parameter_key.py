import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, Protocol

from botocore.exceptions import ClientError

from cloudpar_protocol.errors import Unavailable
from cloudpar_protocol.seals import KEY_BYTES


class ParameterClient(Protocol):
    """The calls of Systems Manager that this module makes."""

    def get_parameter(self, *, Name: str, WithDecryption: bool) -> Any:  # noqa: N803 - AWS's names of parameters
        """Read a parameter."""

    def put_parameter(self, *, Name: str, Value: str, Type: Any, Description: str) -> Any:  # noqa: N803 - AWS's names of parameters
        """Create a parameter. The call fails if the parameter exists."""


class ParameterKey:
    """The key that encrypts the accounts' keys: a SecureString parameter of AWS Systems Manager.

    The first Lambda function that needs the key, and has the permission to create it, creates it. Until then, a
    function without this permission refuses the requests that need the key. The key is in no template and in no table.
    A standard parameter that is encrypted with AWS's own key costs nothing; a secret in Secrets Manager or a customer
    managed key of KMS would cost money.
    """

    def __init__(self, client: Callable[[], ParameterClient], name: str) -> None:
        self._client = client
        self._name = name

    def __call__(self) -> bytes:
        """Return the key.

        Raises:
            Unavailable: The key does not exist yet, and this function has no permission to create it; or the key was
                just created, and AWS does not find it yet.
            ClientError, BotoCoreError: AWS does not let this function read the key, or does not answer.
        """
        found = self._read()
        if found is None:
            self._make()
            found = self._read()
        if found is None:
            raise Unavailable("the key that encrypts accounts' keys is not there yet: try again")
        return found

    def _read(self) -> bytes | None:
        try:
            reply = self._client().get_parameter(Name=self._name, WithDecryption=True)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ParameterNotFound":
                raise
            return None
        return b64decode(reply["Parameter"]["Value"])

    def _make(self) -> None:
        try:
            self._client().put_parameter(
                Name=self._name,
                Value=b64encode(secrets.token_bytes(KEY_BYTES)).decode(),
                Type="SecureString",
                Description="Cloud Parallelizer: encrypts the keys of accounts",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] not in {"ParameterAlreadyExists", "AccessDeniedException"}:
                raise
