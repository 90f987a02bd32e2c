"""The Auto Scaling group of a deployment, and the timer that sizes it."""

import json
from typing import Any

import msgspec

from cloudpar_master.adapters.aws.fleet_lock import KEY
from cloudpar_master.core.shortage import Shortage

from .deployment import Deployment


class Group:
    """The group of a deployment, whose instances only exist in the stand-in's list."""

    def __init__(self, deployment: Deployment) -> None:
        outputs = deployment.outputs()
        self._name = outputs["FleetGroup"]
        self._row = {"TableName": outputs["PackageTable"], "Key": {"pk": {"S": KEY[0]}, "sk": {"S": KEY[1]}}}
        self._scaling: Any = deployment.aws.client("autoscaling")
        self._functions: Any = deployment.aws.client("lambda")
        self._tables: Any = deployment.aws.client("dynamodb")

    def desired(self) -> int:
        return int(self._found()["DesiredCapacity"])

    def instances(self) -> list[str]:
        return [each["InstanceId"] for each in self._found()["Instances"]]

    def _found(self) -> dict[str, Any]:
        found = self._scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[self._name])
        return dict(found["AutoScalingGroups"][0])

    def resize(self, desired: int) -> None:
        self._scaling.set_desired_capacity(AutoScalingGroupName=self._name, DesiredCapacity=desired)

    def empty(self) -> None:
        """Remove all instances, and what the timer has noted about their silence."""
        self.resize(0)
        self._tables.delete_item(**self._row)

    def desired_after_a_tick(self) -> int:
        """Invoke the timer, which succeeds."""
        assert self.tick() == ""
        return self.desired()

    def tick(self) -> str:
        """Invoke the timer, and return the text of the error that it raised; "" if it succeeded."""
        pages = self._functions.get_paginator("list_functions").paginate()
        (timer,) = (
            each["FunctionName"]
            for page in pages
            for each in page["Functions"]
            if each["Handler"] == "cloudpar_handlers.timer.handle"
        )
        answer = self._functions.invoke(FunctionName=timer)
        found = json.load(answer["Payload"])
        return str(found["errorMessage"]) if "FunctionError" in answer else ""

    def let_pass(self, seconds: float) -> None:
        """Make what the timer has noted as old as if this time had passed."""
        row = self._tables.get_item(**self._row, ConsistentRead=True)["Item"]
        noted = msgspec.json.decode(row["shortage"]["S"], type=Shortage)
        assert noted.since is not None
        resumes_at = max(0.0, noted.resumes_at - seconds)
        older = msgspec.structs.replace(noted, since=noted.since - seconds, resumes_at=resumes_at)
        row |= {"shortage": {"S": msgspec.json.encode(older).decode()}, "resumes_at": {"N": str(resumes_at)}}
        self._tables.put_item(TableName=self._row["TableName"], Item=row)
