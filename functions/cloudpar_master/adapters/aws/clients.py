from functools import cached_property
from typing import TYPE_CHECKING, Any

import botocore.session
from botocore.config import Config

if TYPE_CHECKING:
    from types_boto3_autoscaling import AutoScalingClient
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client
    from types_boto3_secretsmanager import SecretsManagerClient
    from types_boto3_sqs import SQSClient

    from .parameter_key import ParameterClient
    from .task_roles import StsClient

ATTEMPTS = 4
"""How many times botocore makes one call, at most, if AWS throttles it, answers 5xx or does not answer. The delays
between these attempts take at most 7 s in total."""

CONNECT_S, ANSWER_S = 2.0, 6.0


class Clients:
    """The clients for AWS's services. Each is made at its first use, because no Lambda function needs all of them.

    botocore makes the clients. boto3 would make the same clients, and takes longer to import.
    """

    def __init__(self, region: str | None = None, endpoint: str | None = None) -> None:
        self._session = botocore.session.get_session()
        self._region = region
        self._endpoint = endpoint

    @property
    def region(self) -> str:
        """The AWS region of all clients; "" if none is configured."""
        return self._region or self._session.get_config_variable("region") or ""

    @cached_property
    def dynamodb(self) -> "DynamoDBClient":
        """Return the client for tables."""
        client: DynamoDBClient = self._make("dynamodb")
        return client

    @cached_property
    def sqs(self) -> "SQSClient":
        """Return the client for queues."""
        client: SQSClient = self._make("sqs")
        return client

    @cached_property
    def s3(self) -> "S3Client":
        """Return the client for payloads. The host of its links names the region, so S3 redirects no request."""
        client: S3Client = self._make(
            "s3",
            signature_version="s3v4",
            s3={"addressing_style": "virtual"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        return client

    @cached_property
    def secrets(self) -> "SecretsManagerClient":
        """Return the client for the workers' token."""
        client: SecretsManagerClient = self._make("secretsmanager")
        return client

    @cached_property
    def parameters(self) -> "ParameterClient":
        """Return the client for the key that encrypts accounts' keys."""
        client: ParameterClient = self._make("ssm")
        return client

    @cached_property
    def autoscaling(self) -> "AutoScalingClient":
        """Return the client for the fleet's group."""
        client: AutoScalingClient = self._make("autoscaling")
        return client

    @cached_property
    def sts(self) -> "StsClient":
        """Return the client for sessions of accounts' roles."""
        client: StsClient = self._make("sts")
        return client

    def _make(self, service: str, **settings: Any) -> Any:
        config = Config(
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            connect_timeout=CONNECT_S,
            read_timeout=ANSWER_S,
            max_pool_connections=16,
            tcp_keepalive=True,
            **settings,
        )
        return self._session.create_client(service, self._region, endpoint_url=self._endpoint, config=config)
