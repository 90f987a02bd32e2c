"""The CDK CLI, as far as deploy uses it: deploys into a folder that the tests' stand-in for CloudFormation reads.

Run with the folder as CLOUD; a file `fail-COMMAND` in it makes that command fail with the file's text.
"""

import json
import os
import shutil
import sys
from pathlib import Path

VERSION = "2.1148.1"


def main(arguments: list[str]) -> int:
    """Do as told, and note it."""
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
        return 1
    if command == "synth":
        folder = Path(arguments[arguments.index("--output") + 1])
        folder.mkdir(parents=True)
        shutil.copy(cloud / "template.json", folder / f"{arguments[1]}.template.json")
    elif command == "deploy":
        assembly = Path(arguments[arguments.index("--app") + 1])
        assert (assembly / f"{arguments[1]}.template.json").exists()
        sys.stdout.write(f"{arguments[1]} | 1/2 | CREATE_IN_PROGRESS | AWS::SQS::Queue | Tasks\n")
        outputs = json.loads((cloud / "outputs.json").read_text())
        Path(arguments[arguments.index("--outputs-file") + 1]).write_text(json.dumps({arguments[1]: outputs}))
        (cloud / "stack.json").write_text(json.dumps({"state": "CREATE_COMPLETE", "outputs": outputs}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
