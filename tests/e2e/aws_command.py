"""A small `aws` command for the scripts of a host: it makes their calls by botocore, which checks each parameter."""

import sys
from collections.abc import Iterator
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.exceptions import ClientError


def main(service: str, command: str, *options: str) -> None:
    """Make a call, and print the field that --query names."""
    named = dict(pairs(options))
    client = botocore.session.Session().create_client(service, str(named.pop("region")))
    query = named.pop("query", None)
    named.pop("output", None)
    method = command.replace("-", "_")
    shape: Any = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[method]).input_shape
    names = {xform_name(name, "-"): name for name in shape.members}
    parameters: dict[str, Any] = {names[name]: value for name, value in named.items()}
    try:
        answer = getattr(client, method)(**parameters)
    except ClientError as error:
        # The stand-in's Auto Scaling lacks this call.
        if method != "terminate_instance_in_auto_scaling_group" or error.response["Error"]["Code"] != "InvalidAction":
            raise
        answer = terminate(client, parameters["InstanceId"], less=parameters["ShouldDecrementDesiredCapacity"])
    if query:
        print(answer[query])


def pairs(options: tuple[str, ...]) -> Iterator[tuple[str, str | bool]]:
    """Yield the options with their values; one without a value is a switch."""
    left = list(options)
    while left:
        name = left.pop(0).removeprefix("--")
        if left and not left[0].startswith("--"):
            yield name, left.pop(0)
        else:
            yield name.removeprefix("no-"), not name.startswith("no-")


def terminate(client: Any, instance: str, *, less: bool) -> dict[str, Any]:
    """End an instance of the group, which may want one instance less afterwards."""
    assert less, "the stand-in has no call that replaces an instance"
    (found,) = client.describe_auto_scaling_instances(InstanceIds=[instance])["AutoScalingInstances"]
    name = found["AutoScalingGroupName"]
    (group,) = client.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    client.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=group["DesiredCapacity"] - 1)
    return {}


if __name__ == "__main__":
    main(*sys.argv[1:])
