import re
from collections.abc import Iterator

from .check import Check
from .plan import Plan
from .project import CDK, NODE, Project

PLATFORMS = {"arm64": "linux/arm64", "x86_64": "linux/amd64"}
"""Docker's names of the architectures of infra/lib/settings.ts."""

ON_AWS = "have AWS build the image: --set imageBuild=codebuild"


def check(project: Project, plan: Plan) -> Iterator[Check]:
    """Check the tools that a deployment needs on this machine."""
    yield _node(project)
    if project.has_packages():
        yield Check("CDK app", "ok", f"{project.root}, packages installed")
    else:
        yield Check("CDK app", "failed", "its packages are not installed", f"run `npm ci` in {project.root}")
    yield _cdk(project)
    if plan.builds_functions:
        yield _answers(project, "uv", [project.uv() or "uv", "--version"], "install uv: `pip install uv`")
    if plan.builds_image:
        yield from docker(project, plan)


def docker(project: Project, plan: Plan) -> Iterator[Check]:
    """Check that Docker can build the worker's images on this machine."""
    fix = f"start Docker, which builds the worker's image, or {ON_AWS}"
    found = _answers(project, "docker", ["docker", "version", "--format", "Docker {{.Server.Version}}"], fix)
    yield found
    if found.state == "ok":
        yield _platforms(project, plan)


def _node(project: Project) -> Check:
    answer = project.answer(["node", "--version"])
    fix = f"install Node.js {'.'.join(map(str, NODE))} or newer, and have `node` on the PATH"
    if answer is None:
        return Check("node", "failed", "there is no Node.js", fix)
    version = re.match(r"v(\d+)\.(\d+)", answer)
    if version is None or (int(version[1]), int(version[2])) < NODE:
        return Check("node", "failed", f"Node.js {answer} is too old", fix)
    return Check("node", "ok", f"Node.js {answer}")


def _cdk(project: Project) -> Check:
    command = project.cdk()
    if command[0] != "npx":
        return Check("cdk", "ok", f"CDK CLI {CDK}")
    if project.tool("npx") is None:
        return Check("cdk", "failed", "neither CDK CLI nor npx is there", "install Node.js with npm, then run `npm ci`")
    return Check("cdk", "ok", f"CDK CLI {CDK}, which npx downloads")


def _platforms(project: Project, plan: Plan) -> Check:
    """Check that Docker can build images for the plan's architectures.

    On Linux, Docker needs an emulator for an architecture that this machine does not have.
    """
    name = "image builds"
    said = re.search(r"^Platforms:(.*)$", project.output(["docker", "buildx", "inspect"]) or "", re.MULTILINE)
    if said is None:
        fix = f"have Docker with buildx (the package docker-buildx-plugin), or {ON_AWS}"
        return Check(name, "warning", "Docker does not say for which platforms it builds", fix)
    known = {each.strip(" *") for each in said[1].split(",")}
    lacking = [each for each in plan.architectures if PLATFORMS.get(each, each) not in known]
    if not lacking:
        return Check(name, "ok", f"for {' and '.join(plan.architectures)}")
    others = [each for each in plan.architectures if each not in lacking]
    leave = f", or leave it out: --set architectures={','.join(others)}" if others else ""
    fix = f"install an emulator: `docker run --privileged --rm tonistiigi/binfmt --install all`{leave}"
    return Check(name, "failed", f"Docker cannot build for {' and '.join(lacking)} here", fix)


def _answers(project: Project, name: str, command: list[str], fix: str) -> Check:
    answer = project.answer(command)
    return Check(name, "failed", f"{name} does not answer", fix) if answer is None else Check(name, "ok", answer)
