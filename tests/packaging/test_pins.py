"""What the project installs or builds upon from elsewhere comes by its hash, and the lists of components name it."""

import json
import re
from pathlib import Path

import pytest

from docs.pages import ROOT

LOCKED = [*sorted((ROOT / "requirements").glob("*.txt")), *sorted((ROOT / "worker").glob("*.txt"))]
DOCKERFILE = (ROOT / "worker/Dockerfile").read_text()
INSTALLING = ("Makefile", "worker/Dockerfile", "worker/install.sh", "functions/bundle.sh")
_COMMAND = re.compile(r"\b(?:uv build|pip install)\b|\$\(PIP\) install\b")


def without_breaks(path: Path) -> list[str]:
    return path.read_text().replace("\\\n", " ").splitlines()


@pytest.mark.parametrize("path", LOCKED, ids=lambda path: path.name)
def test_each_locked_requirement_has_a_hash(path: Path) -> None:
    requirements = [line for line in without_breaks(path) if line and not line.lstrip().startswith("#")]
    assert requirements
    for line in requirements:
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==\S+ ", line), line
        assert "--hash=sha256:" in line


def test_each_lock_is_made_of_a_list_that_make_lock_reads() -> None:
    targets = set(re.findall(r"-o (\S+\.txt)", (ROOT / "Makefile").read_text()))
    assert targets == {str(path.relative_to(ROOT)) for path in LOCKED}


def test_the_image_is_built_on_images_by_digest() -> None:
    """They come from Amazon's gallery: Docker Hub limits pulls without an account."""
    assert "# syntax" not in DOCKERFILE, "this would load another image, which reads the file"
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert len(bases) == 2
    assert len(set(bases)) == 1
    assert re.fullmatch(r"public\.ecr\.aws/docker/library/debian:[a-z]+-\d{8}-slim@sha256:[0-9a-f]{64}", bases[0])
    assert not re.search(r"--from=(?!build\b)|^ADD ", DOCKERFILE, re.MULTILINE)


@pytest.mark.parametrize("name", INSTALLING)
def test_installations_and_builds_check_hashes(name: str) -> None:
    """Exceptions: what this project has built itself (`--no-deps`), and the user's own requirements."""
    commands = [line for line in without_breaks(ROOT / name) if _COMMAND.search(line) and not line.startswith("#")]
    unchecked = [line for line in commands if "--require-hashes" not in line]
    assert len(commands) > len(unchecked)
    assert [line for line in unchecked if "--no-deps" not in line and "$user_requirements" not in line] == []


@pytest.mark.parametrize("name", ["package-lock.json", "sdk/typescript/runtimes/package-lock.json"])
def test_each_package_of_npm_has_a_hash(name: str) -> None:
    """Others are links to folders of the project, or come inside another package (`inBundle`)."""
    packages = json.loads((ROOT / name).read_text())["packages"]
    loaded = {
        path: each
        for path, each in packages.items()
        if "node_modules/" in path and not (each.get("link") or each.get("inBundle"))
    }
    assert len(loaded) > 50
    assert [path for path, each in loaded.items() if "integrity" not in each] == []
