"""Errors of AWS, the CDK and tools on this machine. Their texts say what to do."""

from typing import Any

from cloudpar.errors import CloudparError


class DeploymentError(CloudparError):
    """A deployment cannot be made, changed, deleted or queried. The text says what to do."""


class CdkFailed(DeploymentError):
    """A command of a deployment has failed; `command` names it, such as "cdk deploy"."""

    def __init__(self, message: str, command: str) -> None:
        super().__init__(message)
        self.command = command


class AwsRefused(DeploymentError):
    """AWS refused a call or did not answer; `code` is AWS's error code, or the name of botocore's exception."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class AwsMissing(AwsRefused):
    """AWS says that the named resource does not exist."""


SIGN_IN = "run `aws configure` or `aws sso login`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"

_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"} | {
    "UnauthorizedSSOTokenError", "SSOTokenLoadError", "TokenRetrievalError", "LoginRefreshRequired",
}  # fmt: skip
_UNKNOWN = {"InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "AuthFailure"}
_DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError"}
_CLOSED = {"OptInRequired", "EndpointConnectionError"}
_MISSING = {
    "ParameterNotFound",
    "ResourceNotFoundException",
    "NoSuchResourceException",
    "RepositoryNotFoundException",
} | {"NoSuchBucket", "ChangeSetNotFound"}


def refusal(code: str, text: str, service: str, operation: str, region: str) -> AwsRefused:
    """Return the error for a failed call.

    Args:
        code: AWS's error code, or the name of botocore's exception.
        text: AWS's or botocore's error text.
        service: The service, as botocore names it.
        operation: The operation, as botocore names it.
        region: The region.

    >>> str(refusal("AccessDenied", "no", "sqs", "get_queue_attributes", "eu-west-1"))
    "these AWS credentials may not call sqs:GetQueueAttributes: have it allowed, or use an administrator's (no)"
    """
    if code in _EXPIRED:
        fix = f"the AWS credentials have expired: {SIGN_IN}"
    elif code in _UNKNOWN:
        fix = (
            f"AWS does not know these credentials in {region}: {SIGN_IN}; if they are good elsewhere, have the account "
            f"enable the region ({text})"
        )
    elif code in {"NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"}:
        fix = f"there are no AWS credentials: {SIGN_IN}"
    elif code in _DENIED:
        action = f"{service}:{''.join(part.capitalize() for part in operation.split('_'))}"
        fix = f"these AWS credentials may not call {action}: have it allowed, or use an administrator's ({text})"
    elif code in _CLOSED:
        fix = f"{service} does not answer in {region}: check the network, and that the account has the region enabled"
    else:
        fix = f"AWS refused {service} {operation} in {region}: {text} ({code})"
    missing = code in _MISSING or (code == "ValidationError" and "does not exist" in text)
    return (AwsMissing if missing else AwsRefused)(fix, code)


def code_and_text(error: Any) -> tuple[str, str]:
    """Return AWS's error code and text from a botocore exception.

    If the exception has no code, return the name of its class instead. If the exception has no text from AWS, return
    its own text.
    """
    answer = getattr(error, "response", None)
    found = answer.get("Error", {}) if isinstance(answer, dict) else {}
    return found.get("Code") or type(error).__name__, found.get("Message") or str(error)
