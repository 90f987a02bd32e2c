"""What moto lacks: CloudFormation's stacks as the CDK leaves them, quotas, and the account function.

All other calls go to moto. Parameters are validated against AWS's own models in both cases.
"""

import io
import json
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from cloudpar_protocol.account_messages import Account
from cloudpar_protocol.client_messages import (
    CancelTasksReply,
    HelloReply,
    ListPackagesReply,
    PackageState,
    PackageSummary,
    Progress,
)

Answer = Callable[[Mapping[str, Any]], dict[str, Any]]

NAME = "Cloudpar-dev"
STACK_ID = f"arn:aws:cloudformation:us-east-1:123456789012:stack/{NAME}/1"


def refusal(operation: str, code: str, text: str) -> ClientError:
    """Return an error as AWS sends it."""
    return ClientError({"Error": {"Code": code, "Message": text}}, operation)


class StandIn:
    """Answers for AWS where moto cannot. It shares `folder` with the fake `cdk`, which deploys into it.

    Attributes:
        refusals: For an operation, the error that AWS answers.
        quotas: Quotas by their codes.
        accounts: The created accounts.
        packages: The packages of all accounts.
        calls: The calls that this stand-in has answered, in order.
        refreshes: The requests that the fleet replaces its instances.
        group: Answers for the fleet instead of moto's, together with `activities`, `lifecycles` and `spot_prices`.
        undeletable: An object that cannot be deleted.
        pages: Pages of a bucket's list, instead of moto's.
        changes: The changes to resources in a change set.
        images: Sizes of the images in the CDK's registry.
        machine_images: The machine images of the stack, by their ids, with the times when they were made.
        lacking: Instance families that the region does not offer.
        bare_zones: Availability zones that offer no instance type.
        zones: The region's availability zones; `zone_filters` are those of the last request for them.
        plan: The plan of the AWS account.
        eligible: The instance types that an account with the free plan may start.
        regions: For each operation, the region of its last call.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.refusals: dict[str, tuple[str, str]] = {}
        self.quotas = {"L-34B43A08": 64.0, "L-B99A9384": 1000.0}
        self.accounts: list[Account] = []
        self.packages: list[PackageSummary] = []
        self.token_hashes: list[str] = []
        self.calls: list[str] = []
        self.protected = False
        self.retained: dict[str, str] = {}
        self.deletion = ["DELETE_COMPLETE"]
        self.refreshes: list[Mapping[str, Any]] = []
        self.group: dict[str, Any] | None = None
        self.activities: list[dict[str, Any]] = []
        self.lifecycles: dict[str, str] = {}
        self.spot_prices: dict[tuple[str, str], float] = {}
        self.images: list[int] = []
        self.machine_images: dict[str, datetime] = {}
        self.lacking: set[str] = set()
        self.bare_zones: set[str] = set()
        self.plan = "PAID"
        self.eligible = ["c7i-flex.large", "m7i-flex.large", "t3.micro", "t3.small", "t4g.micro", "t4g.small"]
        self.regions: dict[str, str] = {}
        self.zones = 3
        self.zone_filters: dict[str, list[str]] = {}
        self.undeletable: str | None = None
        self.pages: list[dict[str, Any]] = []
        self.changes: list[dict[str, Any]] = []
        self._reason = ""
        self.account_function: Callable[[dict[str, Any]], Any] = self._account_function
        self._events: list[dict[str, str]] = [_event("old", "CREATE_COMPLETE", NAME)]
        self._deleting = False
        self._answers: dict[str, Answer] = {
            "DescribeStacks": self._describe_stacks,
            "DescribeStackEvents": lambda _: {"StackEvents": [*self._events, *self._events_of_failure()][::-1]},
            "GetTemplate": lambda _: {"TemplateBody": json.dumps(self.deployed)},
            "DescribeChangeSet": self._describe_change_set,
            "DeleteChangeSet": self._delete_change_set,
            "ListStackResources": lambda _: {"StackResourceSummaries": [*map(_resource, self.retained.items())]},
            "DeleteStack": self._delete_stack,
            "GetServiceQuota": self._get_service_quota,
            "GetAWSDefaultServiceQuota": lambda _: {"Quota": {"Value": 5.0}},
            "Invoke": self._invoke,
            "DescribeImages": self._describe_images,
            "DescribeInstanceTypeOfferings": self._describe_offerings,
            "DescribeInstanceTypes": self._describe_types,
            "GetAccountPlanState": lambda _: {"accountPlanType": self.plan, "accountPlanStatus": "ACTIVE"},
            "DescribeAvailabilityZones": self._describe_zones,
        }
        self._group_answers: dict[str, Answer] = {
            "DescribeAutoScalingGroups": lambda _: {"AutoScalingGroups": [self.group]},
            "DescribeScalingActivities": lambda _: {"Activities": self.activities},
            "StartInstanceRefresh": self._start_instance_refresh,
            "DescribeInstances": lambda _: {
                "Reservations": [{"Instances": [*map(_instance, self.lifecycles.items())]}]
            },
            "DescribeSpotPriceHistory": lambda _: {"SpotPriceHistory": [*map(_price, self.spot_prices.items())]},
        }

    @property
    def template(self) -> dict[str, Any]:
        """Return the template that the fake `cdk` synthesizes."""
        read: dict[str, Any] = json.loads((self.folder / "template.json").read_text())
        return read

    @template.setter
    def template(self, body: Mapping[str, Any]) -> None:
        (self.folder / "template.json").write_text(json.dumps(body))

    @property
    def outputs(self) -> dict[str, str]:
        """Return the outputs of the stack that the fake `cdk` deploys."""
        read: dict[str, str] = json.loads((self.folder / "outputs.json").read_text())
        return read

    @outputs.setter
    def outputs(self, values: Mapping[str, str]) -> None:
        (self.folder / "outputs.json").write_text(json.dumps(values))

    @property
    def deployed(self) -> dict[str, Any]:
        """Return the template of the stack."""
        path = self.folder / "deployed.json"
        read: dict[str, Any] = json.loads(path.read_text()) if path.exists() else self.template
        return read

    @deployed.setter
    def deployed(self, body: Mapping[str, Any]) -> None:
        (self.folder / "deployed.json").write_text(json.dumps(body))

    def happen(self, *events: tuple[str, str, str, str]) -> None:
        """Add events of the stack: each has a resource's name, type, status and reason."""
        self._events += [_resource_event(f"e{len(self._events)}-{number}", *each) for number, each in enumerate(events)]

    def happen_in_failure(self, *events: tuple[str, str, str, str]) -> None:
        """Add the events (see `happen`) once the next deployment fails."""
        made = [_resource_event(f"f{number}", *each) for number, each in enumerate(events)]
        (self.folder / "failure.json").write_text(json.dumps(made))

    def _events_of_failure(self) -> list[dict[str, str]]:
        """Return the events of a failure, once the fake `cdk` has failed."""
        path = self.folder / "failed.json"
        found: list[dict[str, str]] = json.loads(path.read_text()) if path.exists() else []
        return found

    def deploy(self, outputs: Mapping[str, str], state: str = "CREATE_COMPLETE") -> None:
        """Create the stack."""
        (self.folder / "stack.json").write_text(json.dumps({"state": state, "outputs": outputs}))

    def answer(self, operation: str, answer: dict[str, Any]) -> None:
        """Answer all later calls of an operation with this."""
        self._answers[operation] = lambda _: answer

    @property
    def call_for(self) -> Callable[[BaseClient, str, Mapping[str, Any]], Any]:
        """Return a function, which becomes a method of the clients when it is put into their class."""

        def call(client: BaseClient, operation: str, parameters: Mapping[str, Any]) -> Any:
            return self._call(client, operation, parameters)

        return call

    def _call(self, client: BaseClient, operation: str, parameters: Mapping[str, Any]) -> Any:
        model = client.meta.service_model.operation_model(operation)
        self.regions[operation] = client.meta.region_name
        problems = ParamValidator().validate(dict(parameters), model.input_shape) if model.input_shape else None
        assert problems is None or not problems.has_errors(), problems.generate_report()
        if operation in self.refusals:
            raise refusal(operation, *self.refusals[operation])
        answers = self._answers | (self._group_answers if self.group is not None else {})
        if operation == "DeleteObjects" and self.undeletable:
            return {"Errors": [{"Key": self.undeletable, "Code": "AccessDenied", "Message": "Access Denied"}]}
        if operation == "ListObjectsV2" and self.pages:
            return self.pages.pop(0)
        if operation in answers:
            self.calls.append(operation)
            return answers[operation](parameters)
        return _ORIGINAL(client, operation, parameters)

    def _describe_stacks(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        path = self.folder / "stack.json"
        if asked["StackName"] not in {NAME, STACK_ID} or not path.exists():
            text = f"Stack with id {asked['StackName']} does not exist"
            raise refusal("DescribeStacks", "ValidationError", text)
        found = json.loads(path.read_text())
        if self._deleting and self.deletion:
            found["state"] = self.deletion.pop(0)
            self._events.append(_event(f"e{len(self._events)}", found["state"], NAME))
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in found["outputs"].items()]
        image = {"ParameterKey": "Image", "ParameterValue": "/aws/service/ami-amazon-linux-latest/x"}
        images = [image | {"ResolvedValue": each} for each in self.machine_images]
        parameters = [{"ParameterKey": "BootstrapVersion", "ParameterValue": "/cdk", "ResolvedValue": "21"}, *images]
        stack = {"StackName": NAME, "StackId": STACK_ID, "StackStatus": found["state"], "Outputs": outputs}
        stack |= {"Parameters": parameters}
        return {"Stacks": [{**stack, "EnableTerminationProtection": self.protected, "StackStatusReason": self._reason}]}

    def _describe_change_set(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        path = self.folder / "change-set"
        if not path.exists() or path.read_text() != asked["ChangeSetName"]:
            raise refusal(
                "DescribeChangeSet", "ChangeSetNotFound", f"ChangeSet [{asked['ChangeSetName']}] does not exist"
            )
        return {"Changes": [{"Type": "Resource", "ResourceChange": each} for each in self.changes]}

    def _delete_change_set(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        assert (self.folder / "change-set").read_text() == asked["ChangeSetName"]
        (self.folder / "change-set").unlink()
        return {}

    def _get_service_quota(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        if asked["QuotaCode"] not in self.quotas:
            raise refusal("GetServiceQuota", "NoSuchResourceException", "The request failed: no such quota")
        return {"Quota": {"Value": self.quotas[asked["QuotaCode"]]}}

    def _describe_images(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Answer EC2, which has machine images, and the registry, which has those of containers."""
        if "repositoryName" not in asked:
            (wanted,) = (each["Values"] for each in asked["Filters"] if each["Name"] == "image-id")
            made = {name: at for name, at in self.machine_images.items() if name in wanted}
            return {"Images": [{"ImageId": name, "CreationDate": _iso(at)} for name, at in made.items()]}
        if not self.images:
            raise refusal("DescribeImages", "RepositoryNotFoundException", f"no {asked['repositoryName']}")
        return {"imageDetails": [{"imageSizeInBytes": size} for size in self.images]}

    def _describe_offerings(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        (types,) = (each["Values"] for each in asked["Filters"] if each["Name"] == "instance-type")
        offered = [each for each in types if each.partition(".")[0] not in self.lacking]
        zones = {each["ZoneName"] for each in self._zones()} - self.bare_zones
        places = [("availability-zone", zone) for zone in sorted(zones)]
        if asked["LocationType"] == "availability-zone":
            # A zone that needs an opt-in offers all types.
            located = [(each, *place) for place in places for each in offered]
            located += [(each, "availability-zone", "us-east-1-atl-1a") for each in types]
        else:
            located = [(each, "region", "us-east-1") for each in offered]
        keys = ("InstanceType", "LocationType", "Location")
        return {"InstanceTypeOfferings": [dict(zip(keys, each, strict=True)) for each in located]}

    def _describe_types(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        assert asked["Filters"] == [{"Name": "free-tier-eligible", "Values": ["true"]}]
        return {"InstanceTypes": [{"InstanceType": each, "FreeTierEligible": True} for each in self.eligible]}

    def _describe_zones(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        self.zone_filters = {each["Name"]: each["Values"] for each in asked["Filters"]}
        return {"AvailabilityZones": self._zones()}

    def _zones(self) -> list[dict[str, str]]:
        return [{"ZoneName": f"us-east-1{letter}"} for letter in "abcdef"[: self.zones]]

    def _start_instance_refresh(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        self.refreshes.append(asked)
        return {"InstanceRefreshId": str(len(self.refreshes))}

    def _delete_stack(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        assert asked["StackName"] == STACK_ID
        self._deleting = True
        return {}

    def _invoke(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        assert asked["FunctionName"] == "account-function"
        answer = self.account_function(json.loads(asked["Payload"]))
        if isinstance(answer, Exception):
            said = json.dumps({"errorType": type(answer).__name__, "errorMessage": str(answer)})
            return {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": io.BytesIO(said.encode())}
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode())}

    def _account_function(self, event: dict[str, Any]) -> dict[str, Any]:
        body = event["body"]
        if event["route"] == "create_account":
            made = Account(
                account_id=f"a{len(self.accounts) + 1}", name=body["name"], state="active",
                granted_us=body["quota_us"], spent_us=0, created_at=time.time(),
            )  # fmt: skip
            self.accounts.append(made)
            self.token_hashes.append(body["token_hash"])
            return _answer({"v": 1, "account": _builtins(made)})
        if event["route"] == "list_accounts":
            return _answer({"v": 1, "accounts": [_builtins(each) for each in self.accounts]})
        if event["route"] == "hello":
            return _answer(msgspec.to_builtins(HelloReply(release="0.1.0", role="admin")))
        if event["route"] == "list_packages":
            return _answer(msgspec.to_builtins(ListPackagesReply(packages=self.packages[: body["limit"]])))
        if event["route"] == "cancel_tasks":
            return _answer(msgspec.to_builtins(self._cancel(body["package_id"])))
        error = {"v": 1, "code": "not_found", "message": f"no account {body['account_id']}", "retryable": False}
        return {"status": 404, "body": error}

    def _cancel(self, package_id: str) -> CancelTasksReply:
        (found,) = (each for each in self.packages if each.package_id == package_id)
        if found.state != "running":
            return CancelTasksReply(state=found.state, charged_us=found.progress.charged_us)
        at = self.packages.index(found)
        self.packages[at] = msgspec.structs.replace(found, state="cancelled")
        return CancelTasksReply(state="cancelled", cancelled=[(1, found.progress.tasks)], charged_us=1_000_000)


def _iso(at: datetime) -> str:
    """Return a time as EC2 writes it."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def package(package_id: str, account_id: str, state: PackageState = "running") -> PackageSummary:
    """Return a package of four tasks."""
    ended = None if state == "running" else time.time() - 90
    return PackageSummary(
        package_id=package_id, account_id=account_id, name="square", state=state, started_at=time.time() - 100,
        ended_at=ended, progress=Progress(tasks=4, done=1, charged_us=2_000_000),
    )  # fmt: skip


_ORIGINAL: Callable[[BaseClient, str, Mapping[str, Any]], Any] = vars(BaseClient)["_make_api_call"]


def _answer(body: dict[str, Any]) -> dict[str, Any]:
    return {"status": 200, "body": body}


def _builtins(made: Account) -> dict[str, Any]:
    return {name: getattr(made, name) for name in made.__struct_fields__}


def _resource(named: tuple[str, str]) -> dict[str, str]:
    return {"LogicalResourceId": named[0], "PhysicalResourceId": named[1], "ResourceType": "AWS::Some::Thing"}


def _instance(known: tuple[str, str]) -> dict[str, str]:
    return {"InstanceId": known[0]} | ({"InstanceLifecycle": known[1]} if known[1] else {})


def _price(known: tuple[tuple[str, str], float]) -> dict[str, str]:
    (kind, zone), usd = known
    return {"InstanceType": kind, "AvailabilityZone": zone, "SpotPrice": str(usd)}


def _resource_event(event_id: str, name: str, kind: str, status: str, reason: str) -> dict[str, str]:
    return {**_event(event_id, status, name), "ResourceType": kind, "ResourceStatusReason": reason}


def _event(event_id: str, state: str, name: str) -> dict[str, str]:
    return {"EventId": event_id, "ResourceStatus": state, "LogicalResourceId": name, "StackId": STACK_ID}
