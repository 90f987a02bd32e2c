import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from cloudpar.errors import NotFound

from .aws import Aws
from .failures import AwsMissing, DeploymentError

PREFIX = "Cloudpar-"
ENVIRONMENTS = ("dev", "staging", "prod")

SERVES = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "UPDATE_IN_PROGRESS"} | {
    "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS", "IMPORT_COMPLETE",
}  # fmt: skip
"""States in which a stack answers: an update replaces its parts one by one."""


def stack_name(environment: str) -> str:
    """The stack of an environment.

    >>> stack_name("dev")
    'Cloudpar-dev'
    """
    return f"{PREFIX}{environment}"


class Stack(msgspec.Struct, frozen=True):
    """A stack as CloudFormation describes it.

    Attributes:
        name: Such as Cloudpar-dev.
        id: Its ARN: it stays good for a while after the stack was deleted.
        state: CloudFormation's own word.
        reason: Why it is in that state, if CloudFormation says so.
        protected: Termination protection is on.
        outputs: What infra/lib/stack.ts hands out.
    """

    name: str
    id: str
    state: str
    reason: str
    protected: bool
    outputs: dict[str, str]

    @property
    def serves(self) -> bool:
        """Whether its endpoint may be expected to answer."""
        return self.state in SERVES

    @property
    def failed(self) -> bool:
        """Whether it was never made whole: nothing can be changed about it, it can only be deleted."""
        return self.state in {"ROLLBACK_COMPLETE", "ROLLBACK_FAILED"}

    @property
    def made(self) -> bool:
        """Whether anything of it was made that an update goes on from."""
        return not self.failed and self.state != "REVIEW_IN_PROGRESS"

    def advice(self, region: str) -> str | None:
        """What to do about a stack that is no pool and will not become one by itself; None: it is or will."""
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
        """Refuse to go on if it may not be deleted.

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
        """An output.

        Raises:
            NotFound: The stack has none of that name.
        """
        try:
            return self.outputs[key]
        except KeyError:
            raise NotFound(
                f"stack {self.name} ({self.state}) has no output {key}: it was not deployed whole, or by another "
                "release; run `cloudpar deploy` again"
            ) from None


def find(aws: Aws, name: str) -> Stack | None:
    """The stack of that name or ARN, if there is one; one that is deleted only by its ARN."""
    try:
        found = aws.call("cloudformation", "describe_stacks", StackName=name)["Stacks"]
    except AwsMissing:
        return None
    return _read(found[0]) if found else None


def get(aws: Aws, name: str) -> Stack:
    """The stack of that name.

    Raises:
        NotFound: There is none.
    """
    found = find(aws, name)
    if found is None:
        raise NotFound(
            f"there is no stack {name} in {aws.region}: name its region by --region, or make one by `cloudpar deploy`"
        )
    return found


def _read(found: Mapping[str, Any]) -> Stack:
    outputs = {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", ())}
    return Stack(
        name=found["StackName"],
        id=found["StackId"],
        state=found["StackStatus"],
        reason=found.get("StackStatusReason", ""),
        protected=found.get("EnableTerminationProtection", False),
        outputs=outputs,
    )


def template(aws: Aws, name: str) -> dict[str, Any]:
    """The template that the stack was made from; an empty one of a stack of which nothing was made yet."""
    body = aws.call("cloudformation", "get_template", StackName=name).get("TemplateBody") or {}
    read: dict[str, Any] = json.loads(body) if isinstance(body, str) else body
    return read


def physical_ids(aws: Aws, name: str) -> dict[str, str]:
    """By the name in the template, how each resource is called in AWS."""
    found = aws.pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=name)
    return {each["LogicalResourceId"]: each.get("PhysicalResourceId", "") for each in found}


class Events:
    """What happened to a stack since the last look, oldest first."""

    def __init__(self, aws: Aws, stack_id: str) -> None:
        self._aws = aws
        self._stack_id = stack_id
        self._last: str | None = None
        self.skip()

    def skip(self) -> None:
        """What happened until now is of no interest."""
        for _ in self.new():
            pass

    def new(self) -> Iterator[str]:
        """A line for each."""
        fresh: list[Mapping[str, Any]] = []
        for event in self._aws.pages(
            "cloudformation", "describe_stack_events", "StackEvents", StackName=self._stack_id
        ):
            if event["EventId"] == self._last:
                break
            fresh.append(event)
        if fresh:
            self._last = fresh[0]["EventId"]
        for event in reversed(fresh):
            reason = event.get("ResourceStatusReason")
            yield f"{event['ResourceStatus']:22} {event['LogicalResourceId']}" + (f": {reason}" if reason else "")
