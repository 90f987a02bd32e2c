"""The stack's template as the app generates it, and what its policies allow."""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
SYNTH_S = 300.0
"""A time that only a hanging process exceeds."""


class Right(NamedTuple):
    """An action on a resource, with the key prefix if it is a listing. In a grant, each may contain wildcards."""

    action: str
    resource: str
    prefix: str = ""

    def covers(self, need: "Right") -> bool:
        """Whether this grant allows a need."""
        return self.action == need.action and all(
            fnmatchcase(theirs, ours) for theirs, ours in zip(need[1:], self[1:], strict=True)
        )


@cache
def synthesized(root: Path = ROOT, **settings: str) -> dict[str, Any]:
    """Generate the template with these settings, by the app in a checkout; of dev if they name no environment."""
    with tempfile.TemporaryDirectory() as name:
        bundle = Path(name) / "bundle"
        bundle.mkdir()
        context = json.loads((root / "cdk.json").read_text())["context"]
        context |= {"env": "dev", "bundle": str(bundle), "workerImage": "example/worker:1", **settings}
        environment = os.environ | {"CDK_OUTDIR": name, "CDK_CONTEXT_JSON": json.dumps(context)}
        command = [ROOT / "node_modules/.bin/tsx", root / "infra/bin/cloudpar.ts"]
        subprocess.run(command, cwd=root, env=environment, check=True, timeout=SYNTH_S)
        (file,) = Path(name).glob("Cloudpar-*.template.json")
        made: dict[str, Any] = json.loads(file.read_text())
        return made


def function(name: str) -> dict[str, Any]:
    """Return the properties of a function with this handler."""
    (found,) = (
        each["Properties"]
        for each in synthesized()["Resources"].values()
        if each["Type"] == "AWS::Lambda::Function"
        and each["Properties"]["Handler"] == f"cloudpar_handlers.{name}.handle"
    )
    return dict(found)


def grants(name: str) -> set[Right]:
    """Return what the policies of a function's role allow."""
    role = {"Ref": function(name)["Role"]["Fn::GetAtt"][0]}
    policies = [
        each["Properties"] for each in synthesized()["Resources"].values() if each["Type"] == "AWS::IAM::Policy"
    ]
    return {right for policy in policies if role in policy["Roles"] for right in _rights(policy["PolicyDocument"])}


def _rights(document: dict[str, Any]) -> Iterator[Right]:
    for statement in document["Statement"]:
        assert statement["Effect"] == "Allow"
        condition = statement.get("Condition", {"StringLike": {"s3:prefix": [""]}})
        assert condition.keys() == {"StringLike"}
        assert condition["StringLike"].keys() == {"s3:prefix"}
        for action in _list(statement["Action"]):
            for resource in _list(statement["Resource"]):
                for prefix in _list(condition["StringLike"]["s3:prefix"]):
                    yield Right(action, text(resource), prefix)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def text(value: Any) -> str:
    """Return a value of the template, with the app's names for resources.

    >>> text({"Fn::Join": ["", [{"Fn::GetAtt": ["StoragePackages1A2B3C4D", "Arn"]}, "/index/due"]]})
    'StoragePackages/index/due'
    """
    match value:
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(map(text, parts))
        case {"Fn::GetAtt": [name, "Arn"]} | {"Ref": name}:
            return re.sub(r"[0-9A-F]{8}$", "", name)
        case str():
            return value
    raise AssertionError(value)
