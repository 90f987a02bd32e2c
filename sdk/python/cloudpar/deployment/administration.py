import json
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, TypeVar

from msgspec import Struct

from cloudpar.errors import InternalError
from cloudpar_protocol import codec
from cloudpar_protocol.routes import Route

from . import executor_price, token_secret
from . import stack as stacks
from .aws import Aws
from .failures import DeploymentError

RequestT = TypeVar("RequestT", bound=Struct)
ReplyT = TypeVar("ReplyT", bound=Struct)


class Administration:
    """Sends an operator's requests to the account function of a stack, a Lambda function that IAM protects."""

    def __init__(self, aws: Aws, stack: stacks.Stack) -> None:
        self._aws = aws
        self._stack = stack
        self._function = stack.output("AccountFunction")
        self.stack = stack.name
        self.region = aws.region
        self.endpoint = stack.output("Endpoint").rstrip("/")

    def call(self, route: Route[RequestT, ReplyT], message: RequestT) -> ReplyT:
        """Send a request, like Connection.call. The AWS library may repeat the request, which does no harm.

        Raises:
            RequestError: The master refused the request, or its answer does not have the form that this release
                expects.
            DeploymentError: AWS refused or did not answer, or the function failed.
        """
        body = codec.encode(message, codec.JSON).decode()
        event = f'{{"route":"{route.name}","who":{json.dumps(self._who)},"body":{body}}}'
        answer = self._aws.call("lambda", "invoke", FunctionName=self._function, Payload=event.encode())
        payload = answer["Payload"].read()
        if answer.get("FunctionError"):
            groups = f"aws logs describe-log-groups --region {self.region} --log-group-name-prefix {self.stack}-"
            raise DeploymentError(
                f"the function {self._function} failed: {_what(payload)}; its log says why: `{groups}` names it, "
                f"and `aws logs tail GROUP --region {self.region} --since 10m` shows it"
            )
        status, reply = _read(payload)
        if status != 200:
            raise codec.decode_error(reply, status)
        return codec.decode(reply, route.reply)

    @cached_property
    def _who(self) -> str:
        """The ARN of these credentials, for the log of operators' requests; empty if AWS does not return it."""
        try:
            return str(self._aws.call("sts", "get_caller_identity")["Arn"])
        except DeploymentError:
            return ""

    def executor_usd(self) -> float | None:
        """Estimate the price of an executor of this stack per hour; see `executor_price.executor_usd`."""
        return executor_price.executor_usd(self._aws, self.stack)

    def trust_policy(self, account_id: str) -> dict[str, Any]:
        """Return the trust policy of an IAM role for an account's tasks: only this stack's workers may assume the role.

        Raises:
            NotFound: The stack is of an earlier release, which gives tasks no credentials.
        """
        statement = {
            "Effect": "Allow",
            "Principal": {"AWS": self._stack.output("WorkerRole")},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"sts:ExternalId": account_id}},
        }
        return {"Version": "2012-10-17", "Statement": [statement]}

    def keep_token(self, name: str, token: str) -> AbstractContextManager[str]:
        """Keep a user's token in a secret; see `token_secret.kept`."""
        return token_secret.kept(self._aws, self.stack, name, token)


def connect(name: str, region: str | None) -> Administration:
    """Connect to the account function of a stack.

    Raises:
        NotFound: There is no such stack, or the stack lacks an output because it was not deployed completely.
        ConfigurationError: No region is configured.
        DeploymentError: botocore is not installed, the AWS profile does not exist, or AWS refuses or does not answer.
    """
    aws = Aws(region)
    return Administration(aws, stacks.get(aws, name))


def _read(payload: bytes) -> tuple[int, bytes]:
    try:
        answer = json.loads(payload)
        return int(answer["status"]), codec.encode(answer["body"])
    except (ValueError, KeyError, TypeError):
        raise InternalError(
            "the account function answered with something else than this release expects: run `cloudpar deploy` again"
        ) from None


def _what(payload: bytes) -> str:
    try:
        return str(json.loads(payload)["errorMessage"])
    except (ValueError, KeyError, TypeError):
        return payload.decode(errors="replace")[:200]
