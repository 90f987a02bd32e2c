import json
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

import msgspec

from cloudpar.errors import NotFound

from .aws import Aws
from .failures import AwsMissing, DeploymentError

PREFIX = "Cloudpar-"
ENVIRONMENTS = ("dev", "staging", "prod")


def stack_name(environment: str) -> str:
    """Return the stack name of an environment.

    >>> stack_name("dev")
    'Cloudpar-dev'
    """
    return f"{PREFIX}{environment}"


class Stack(msgspec.Struct, frozen=True):
    """A stack as CloudFormation describes it.

    Attributes:
        name: The name, such as Cloudpar-dev.
        id: The ARN. With it the stack can be found even for some time after its deletion.
        state: The status, as CloudFormation names it.
        reason: CloudFormation's reason for this state; empty if it gives none.
        protected: Whether termination protection is on.
        outputs: The values of the stack's outputs, by the names in infra/lib/stack.ts.
        images: The ids of the machine images that CloudFormation looked up for the last deployment.
    """

    name: str
    id: str
    state: str
    reason: str
    protected: bool
    outputs: dict[str, str]
    images: list[str]

    @property
    def failed(self) -> bool:
        """Whether the creation of the stack failed, so that it can only be deleted."""
        return self.state in {"ROLLBACK_COMPLETE", "ROLLBACK_FAILED"}

    @property
    def made(self) -> bool:
        """Whether the stack exists, at least in part, so that an update can continue with it."""
        return not self.failed and self.state != "REVIEW_IN_PROGRESS"

    def advice(self, region: str) -> str | None:
        """Say what to do about a stack that is not usable and does not become usable by itself; None for other stacks.

        Such a stack was only prepared, or could not be created, or could not be deleted.
        """
        which = f"--env {self.name.removeprefix(PREFIX)} --region {region}"
        if self.state == "REVIEW_IN_PROGRESS":
            return f"nothing of it was made yet: run `cloudpar deploy {which}`"
        if not self.failed and self.state != "DELETE_FAILED":
            return None
        why = "it was never made whole" if self.failed else "a part of it could not be deleted"
        return (
            f"{why}: run `cloudpar destroy {which}`, which says what stays and what that costs, then `cloudpar deploy "
            f"{which}` for a new one"
        )

    def refuse_protected(self, region: str) -> None:
        """Raise if the stack is protected from deletion.

        Raises:
            DeploymentError: Termination protection is on; the text names the command that ends it.
        """
        if self.protected:
            raise DeploymentError(
                f"{self.name} ({self.state}) is protected from termination: run `aws cloudformation "
                f"update-termination-protection --no-enable-termination-protection --stack-name {self.name} --region "
                f"{region}`, then this again"
            )

    def output(self, key: str) -> str:
        """Return an output.

        Raises:
            NotFound: The stack has no output of this name.
        """
        try:
            return self.outputs[key]
        except KeyError:
            raise NotFound(
                f"stack {self.name} ({self.state}) has no output {key}: it was not deployed whole, or by another "
                "release; run `cloudpar deploy` again"
            ) from None


def find(aws: Aws, name: str) -> Stack | None:
    """Find a stack by its name or ARN, or a deleted stack by its ARN; None if there is no such stack."""
    try:
        found = aws.call("cloudformation", "describe_stacks", StackName=name)["Stacks"]
    except AwsMissing:
        return None
    return _read(found[0]) if found else None


def get(aws: Aws, name: str) -> Stack:
    """Return the stack of this name.

    Raises:
        NotFound: There is no such stack in this region.
        DeploymentError: AWS refuses, or does not answer.
    """
    found = find(aws, name)
    if found is None:
        raise NotFound(
            f"there is no stack {name} in {aws.region}: name its region by --region, or make one by `cloudpar deploy`"
        )
    return found


def _read(found: Mapping[str, Any]) -> Stack:
    outputs = {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", ())}
    resolved = (each.get("ResolvedValue", "") for each in found.get("Parameters", ()))
    return Stack(
        name=found["StackName"],
        id=found["StackId"],
        state=found["StackStatus"],
        reason=found.get("StackStatusReason", ""),
        protected=found.get("EnableTerminationProtection", False),
        outputs=outputs,
        images=[image for image in resolved if image.startswith("ami-")],
    )


def template(aws: Aws, name: str) -> dict[str, Any]:
    """Return the template of the stack; empty if nothing of the stack was made yet."""
    body = aws.call("cloudformation", "get_template", StackName=name).get("TemplateBody") or {}
    read: dict[str, Any] = json.loads(body) if isinstance(body, str) else body
    return read


def physical_ids(aws: Aws, name: str) -> dict[str, str]:
    """Return the names in AWS of a stack's resources, by their names in the template."""
    found = aws.pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=name)
    return {each["LogicalResourceId"]: each.get("PhysicalResourceId", "") for each in found}


class Events:
    """Reads the events of a stack, each only once. Events from before this object was made are left out."""

    def __init__(self, aws: Aws, stack_id: str) -> None:
        self._aws = aws
        self._stack_id = stack_id
        self._last = newest_event(aws, stack_id)

    def new(self) -> Iterator[str]:
        """Yield a line for each event since the last call, oldest first.

        Raises:
            AwsMissing: There is no such stack.
            AwsRefused: AWS refused, or does not answer.
        """
        for event in events_since(self._aws, self._stack_id, self._last):
            self._last = event["EventId"]
            reason = event.get("ResourceStatusReason")
            yield f"{event['ResourceStatus']:22} {event['LogicalResourceId']}" + (f": {reason}" if reason else "")


def newest_event(aws: Aws, stack: str) -> str | None:
    """Return the id of a stack's last event; None if the stack has no event yet."""
    event = next(_events(aws, stack), None)
    return None if event is None else str(event["EventId"])


def events_since(aws: Aws, stack: str, after: str | None) -> list[Mapping[str, Any]]:
    """Return the events of a stack after the event with the id `after`, oldest first; all events if `after` is None."""
    fresh = list(takewhile(lambda event: event["EventId"] != after, _events(aws, stack)))
    return fresh[::-1]


def _events(aws: Aws, stack: str) -> Iterator[Mapping[str, Any]]:
    return aws.pages("cloudformation", "describe_stack_events", "StackEvents", StackName=stack)
