"""The CDK's command line, as far as deploy uses it. It deploys into a folder that stand_in.py reads.

The folder is named by CLOUD; a file `fail-COMMAND` in it makes that command fail with the file's text. The template
that it synthesizes keeps the settings and uses the tables that the context names, as the app in infra/ does.
"""

import json
import os
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

VERSION = "2.1148.1"
LOCAL = {"env", "bundle", "unset", "unavailableFamilies"}


def main(arguments: list[str]) -> int:
    cloud = Path(os.environ["CLOUD"])
    if arguments == ["--version"]:
        sys.stdout.write(f"{VERSION} (build 0000000)\n")
        return 0
    with (cloud / "calls").open("a") as calls:
        calls.write(json.dumps({"arguments": arguments, "region": os.environ.get("AWS_REGION")}) + "\n")
    command = arguments[0]
    failing = cloud / f"fail-{command}"
    if failing.exists():
        sys.stderr.write(failing.read_text())
        if (cloud / "failure.json").exists():
            (cloud / "failure.json").rename(cloud / "failed.json")
        return 1
    if command == "synth":
        folder = Path(arguments[arguments.index("--output") + 1])
        folder.mkdir(parents=True)
        made = synthesized(json.loads((cloud / "template.json").read_text()), arguments)
        (folder / f"{arguments[1]}.template.json").write_text(json.dumps(made))
    elif command == "deploy":
        deploy(cloud, arguments)
    return 0


def synthesized(template: dict[str, Any], arguments: list[str]) -> dict[str, Any]:
    """Return the template with the context's settings."""
    given = [value for option, value in pairwise(arguments) if option == "-c"]
    context = dict(each.split("=", 1) for each in given)
    record = {name: context[name] for name in sorted(context) if name not in LOCAL}
    settings = {"Type": "AWS::SSM::Parameter", "Properties": {"Value": json.dumps(record)}}
    tables = {
        "PackageTable": {"Value": context.get("packageTable") or {"Ref": "Packages"}},
        "AccountTable": {"Value": context.get("accountTable") or {"Ref": "Accounts"}},
    }
    return {**template, "Resources": {**template["Resources"], "Settings": settings}, "Outputs": tables}


def deploy(cloud: Path, arguments: list[str]) -> None:
    """Create the stack, or a change set of it."""
    method = arguments[arguments.index("--method") + 1] if "--method" in arguments else None
    assembly = Path(arguments[arguments.index("--app") + 1])
    made = assembly / f"{arguments[1]}.template.json"
    if method == "prepare-change-set":
        if not (cloud / "deployed.json").exists() or made.read_text() != (cloud / "deployed.json").read_text():
            (cloud / "change-set").write_text(arguments[arguments.index("--change-set-name") + 1])
        return
    if method == "execute-change-set":
        assert (cloud / "change-set").read_text() == arguments[arguments.index("--change-set-name") + 1]
        (cloud / "change-set").unlink()
    sys.stdout.write(f"{arguments[1]} | 1/2 | CREATE_IN_PROGRESS | AWS::SQS::Queue | Tasks\n")
    shutil.copy(made, cloud / "deployed.json")
    outputs = json.loads((cloud / "outputs.json").read_text())
    (cloud / "stack.json").write_text(json.dumps({"state": "CREATE_COMPLETE", "outputs": outputs}))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
