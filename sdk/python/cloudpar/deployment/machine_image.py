"""Determines the age of the machine image from which a stack starts its instances.

A deployment takes Amazon's newest image, and keeps it until the next deployment. So without deployments the instances
get no security updates of the kernel.
"""

from datetime import UTC, datetime

from .aws import Aws
from .failures import AwsRefused
from .stack import PREFIX, Stack

OLD_DAYS = 30
"""After how many days an image counts as old. Amazon publishes newer ones about every two weeks."""


def age_days(aws: Aws, there: Stack) -> int | None:
    """Return the age of a stack's oldest image in days; None if the stack or AWS has no information about images."""
    if not there.images:
        return None
    try:
        found = aws.pages(
            "ec2", "describe_images", "Images",
            # A filter skips images that Amazon has deleted. Without the filter, AWS would answer such an id with an
            # error.
            Filters=[{"Name": "image-id", "Values": there.images}], IncludeDeprecated=True,
        )  # fmt: skip
        made = [datetime.fromisoformat(each["CreationDate"]) for each in found]
    except AwsRefused:  # without the age the output is still useful
        return None
    return (datetime.now(UTC) - min(made)).days if made else None


def advice(days: int | None, there: str, region: str) -> str | None:
    """Return how to get a newer image if the image of the stack `there` is old; otherwise None.

    >>> advice(41, "Cloudpar-dev", "eu-west-1")
    'the machine image is 41 days old: run `cloudpar deploy --env dev --region eu-west-1`, which takes the newest one'
    >>> advice(30, "Cloudpar-dev", "eu-west-1")
    """
    if days is None or days <= OLD_DAYS:
        return None
    command = f"cloudpar deploy --env {there.removeprefix(PREFIX)} --region {region}"
    return f"the machine image is {days} days old: run `{command}`, which takes the newest one"
