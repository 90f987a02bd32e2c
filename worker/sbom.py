"""Writes lists of components (SBOMs, in CycloneDX's JSON) for the wheel and for the worker's image.

    sbom.py TOOLS OUT    with the programs of requirements/sbom.txt in the folder TOOLS; `make sbom` runs it

The list of the image contains its base image, its interpreters and its Python packages, all with their hashes or exact
versions. It lacks Debian's packages and those of user/requirements.txt, which are known only after the build.
"""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
_FROM: Final = re.compile(
    r"^FROM (?P<repository>\S+/(?P<name>\w+)):(?P<version>\S+)@sha256:(?P<digest>[0-9a-f]{64})$", re.MULTILINE
)
_PYTHONS: Final = re.compile(r'^ARG PYTHONS="(?P<versions>[^"]+)"$', re.MULTILINE)
_VALIDATE: Final = (
    "import sys; from cyclonedx.schema import SchemaVersion; "
    "from cyclonedx.validation.json import JsonStrictValidator; "
    "found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read()); sys.exit(found and repr(found))"
)

Component = dict[str, Any]


def base_image(dockerfile: str) -> Component:
    """Return the image on which the worker's image is built.

    Raises:
        ValueError: The last stage of the Dockerfile does not name its base image by digest.
    """
    found = list(_FROM.finditer(dockerfile))
    if not found:
        raise ValueError("the last stage of worker/Dockerfile has no base image of the form FROM a/b:tag@sha256:...")
    repository, name, version, digest = found[-1].group("repository", "name", "version", "digest")
    purl = f"pkg:oci/{name}@sha256%3A{digest}?repository_url={repository}&tag={version}"
    return _component("container", name, version, purl, digest)


def interpreters(dockerfile: str) -> list[Component]:
    """Return the interpreters that this release of uv installs into the image. uv checks their hashes."""
    found = _PYTHONS.search(dockerfile)
    versions = found["versions"].split() if found else []
    return [_component("platform", "cpython", full, f"pkg:generic/cpython@{full}") for full in map(_newest, versions)]


def _newest(version: str) -> str:
    wanted = ("python", "list", version, "--only-downloads", "--output-format", "json")
    listed = json.loads(_run(str(Path(sys.executable).parent / "uv"), *wanted))
    return next(str(each["version"]) for each in listed if each["implementation"] == "cpython")


def wheel(path: Path) -> Component:
    """Return the project's wheel."""
    version = path.name.split("-")[1]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    # The URL does not start with pkg:pypi. The name is not registered there, so a stranger's package of this name would
    # be taken for this project.
    return _component("library", "cloudpar", version, f"pkg:generic/cloudpar@{version}", digest)


def _component(kind: str, name: str, version: str, purl: str, digest: str = "") -> Component:
    hashes = {"hashes": [{"alg": "SHA-256", "content": digest}]} if digest else {}
    return {"bom-ref": purl, "type": kind, "name": name, "version": version, "purl": purl, **hashes}


def complete(listed: dict[str, Any], root: Component, more: Iterable[Component]) -> dict[str, Any]:
    """Complete a list of Python packages with `root`, the component that it describes, and with the parts `more`."""
    packages = [{name: value for name, value in each.items() if name != "description"} for each in listed["components"]]
    components = [*packages, *more]
    parts = {"ref": root["bom-ref"], "dependsOn": sorted(each["bom-ref"] for each in components)}
    leaves = [{"ref": each["bom-ref"]} for each in components]
    described = {**listed["metadata"], "component": root}
    return {**listed, "metadata": described, "components": components, "dependencies": [parts, *leaves]}


def _packages(tools: Path, requirements: str) -> dict[str, Any]:
    options = ("--output-reproducible", "--spec-version", "1.6", "--output-format", "JSON")
    listed: dict[str, Any] = json.loads(_run(str(tools / "cyclonedx-py"), "requirements", *options, requirements))
    return listed


def _run(*command: str, given: str | None = None) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, input=given).stdout


def main(tools: Path, out: Path) -> None:
    """Write both lists beside the wheel in `out`."""
    (built,) = out.glob("*.whl")
    dockerfile = (ROOT / "worker/Dockerfile").read_text()
    product = wheel(built)
    image = _component(
        "container", "cloudpar-worker", product["version"], f"pkg:oci/cloudpar-worker@{product['version']}"
    )
    lists = {
        "cloudpar": complete(_packages(tools, "requirements/cloudpar.txt"), product, []),
        "cloudpar-worker": complete(
            _packages(tools, "worker/requirements.txt"),
            image,
            [product, base_image(dockerfile), *interpreters(dockerfile)],
        ),
    }
    for name, made in lists.items():
        text = json.dumps(made, indent=1) + "\n"
        _run(str(tools / "python"), "-c", _VALIDATE, given=text)
        (out / f"{name}.cdx.json").write_text(text)
        print(f"sbom: {out / name}.cdx.json lists {len(made['components'])} components")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
