import os
from collections.abc import Iterator
from typing import Any

from cloudpar._formatting.extras import install_command
from cloudpar.errors import ConfigurationError

from .failures import DeploymentError, code_and_text, refusal

ATTEMPTS = 5
CONNECT_S, ANSWER_S = 5.0, 40.0
"""The time limits for connecting to AWS and for an answer, in seconds. The account function may take up to 28 s."""

ONE_REGION = {"freetier": "us-east-1"}
"""Services that have an endpoint in only one region, and this region. For each other region, botocore makes up a host
that does not exist.
"""


class Aws:
    """One AWS account in one region, with the credentials that AWS's own tools use.

    Raises:
        DeploymentError: botocore is not installed, or there is no such AWS profile.
        ConfigurationError: No region is configured.
    """

    def __init__(self, region: str | None = None) -> None:
        try:
            import botocore.config
            import botocore.exceptions
            import botocore.session
        except ImportError:
            raise DeploymentError(f"botocore is not installed: run `{install_command('aws')}`") from None
        self._failures = (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError)
        try:
            session = botocore.session.Session()
            session.get_scoped_config()  # raises if the profile does not exist
            # AWS's other tools read AWS_REGION, but botocore alone does not.
            named = region or os.environ.get("AWS_REGION") or session.get_config_variable("region")
        except botocore.exceptions.ProfileNotFound as error:
            raise DeploymentError(f"{error}: correct AWS_PROFILE, or run `aws configure --profile NAME`") from None
        if not named:
            raise ConfigurationError("no AWS region is named: add --region, such as eu-central-1, or set AWS_REGION")
        self.region: str = named
        self._session: Any = session
        self._config = botocore.config.Config(
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            connect_timeout=CONNECT_S,
            read_timeout=ANSWER_S,
        )
        self._clients: dict[str, Any] = {}

    def call(self, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        """Call AWS: `call("sqs", "get_queue_attributes", QueueUrl=...)`.

        Raises:
            AwsMissing: The named resource does not exist.
            AwsRefused: AWS refused, or does not answer.
        """
        try:
            answer: dict[str, Any] = getattr(self._client(service), operation)(**parameters)
        except self._failures as error:
            raise refusal(*code_and_text(error), service, operation, self._region_of(service)) from None
        return answer

    def pages(self, service: str, operation: str, key: str, **parameters: Any) -> Iterator[Any]:
        """Yield the entries under `key` of all pages of a list.

        Raises:
            AwsMissing: The named resource does not exist.
            AwsRefused: AWS refused, or does not answer.
        """
        try:
            for page in self._client(service).get_paginator(operation).paginate(**parameters):
                yield from page.get(key, ())  # S3 leaves the list out of a page without objects
        except self._failures as error:
            raise refusal(*code_and_text(error), service, operation, self._region_of(service)) from None

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            region = self._region_of(service)
            self._clients[service] = self._session.create_client(service, region, config=self._config)
        return self._clients[service]

    def _region_of(self, service: str) -> str:
        return ONE_REGION.get(service, self.region)
