"""Keeps users' tokens in Secrets Manager, for programs that have AWS credentials and should not contain a token."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .aws import Aws
from .failures import AwsRefused, DeploymentError

STACK_TAG = "cloudpar:stack"
"""The tag that marks the secrets of a stack's users. These secrets are not resources of the stack."""


@contextmanager
def kept(aws: Aws, stack: str, name: str, token: str) -> Iterator[str]:
    """Keep a token in a new secret, and give its ARN to the `with` block. If the block fails, delete the secret.

    Raises:
        DeploymentError: There is a secret of this name, or AWS refuses.
    """
    try:
        made = aws.call(
            "secretsmanager", "create_secret", Name=name, SecretString=token,
            Description=f"Token of a user of {stack} (cloudpar account create)",
            Tags=[{"Key": STACK_TAG, "Value": stack}],
        )  # fmt: skip
    except AwsRefused as error:
        if error.code == "ResourceExistsException":
            raise DeploymentError(
                f"there is a secret {name} in {aws.region} already: give another name by --secret, or delete that one: "
                f"{deletion(name, aws.region)}"
            ) from None
        raise
    try:
        yield str(made["ARN"])
    except BaseException:
        with suppress(AwsRefused):
            aws.call("secretsmanager", "delete_secret", SecretId=made["ARN"], ForceDeleteWithoutRecovery=True)
        raise


def of_stack(aws: Aws, stack: str) -> list[str]:
    """Return the names of the secrets that hold the tokens of a stack's users."""
    filters = [{"Key": "tag-key", "Values": [STACK_TAG]}, {"Key": "tag-value", "Values": [stack]}]
    found = aws.pages("secretsmanager", "list_secrets", "SecretList", Filters=filters)
    # The filters also match stacks whose names only start with this name, so this function compares the whole tag.
    return sorted(each["Name"] for each in found if {"Key": STACK_TAG, "Value": stack} in each.get("Tags", ()))


def deletion(name: str, region: str) -> str:
    """Return the command that deletes a secret.

    >>> deletion("ada-token", "us-east-1")
    'aws secretsmanager delete-secret --recovery-window-in-days 7 --region us-east-1 --secret-id ada-token'
    """
    return f"aws secretsmanager delete-secret --recovery-window-in-days 7 --region {region} --secret-id {name}"
