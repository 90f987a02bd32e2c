"""The lists of components name what the worker's image is made of."""

import hashlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from docs.pages import ROOT

DOCKERFILE = (ROOT / "worker/Dockerfile").read_text()


@pytest.fixture(scope="module")
def sbom() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sbom", ROOT / "worker/sbom.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_base_image_is_named_with_its_digest(sbom: ModuleType) -> None:
    base = sbom.base_image(DOCKERFILE)
    repository = re.search(r"repository_url=(\S+)&", base["purl"])
    assert repository is not None
    assert f"FROM {repository[1]}:{base['version']}@sha256:{base['hashes'][0]['content']}\n" in DOCKERFILE
    assert base["name"] == "debian"
    with pytest.raises(ValueError, match="no base image"):
        sbom.base_image("FROM public.ecr.aws/docker/library/debian:trixie-slim\n")


def test_the_interpreters_are_named_with_their_exact_versions(sbom: ModuleType) -> None:
    versions = [each["version"] for each in sbom.interpreters(DOCKERFILE)]
    assert [version.rpartition(".")[0] for version in versions] == ["3.11", "3.12", "3.13", "3.14"]
    assert all(re.fullmatch(r"3\.\d+\.\d+", version) for version in versions)


def test_a_wheel_is_named_with_its_version_and_hash(sbom: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "cloudpar-1.2.3-py3-none-any.whl"
    path.write_bytes(b"wheel")
    made = sbom.wheel(path)
    assert (made["purl"], made["version"]) == ("pkg:generic/cloudpar@1.2.3", "1.2.3")
    assert made["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(b"wheel").hexdigest()}]


def test_what_is_described_depends_on_all_components(sbom: ModuleType) -> None:
    package = {"bom-ref": "p", "type": "library", "name": "p", "version": "1", "description": "a line with all hashes"}
    listed = {"metadata": {"tools": {}}, "components": [package], "dependencies": [{"ref": "p"}]}
    root, base = {"bom-ref": "r"}, {"bom-ref": "b"}
    made = sbom.complete(listed, root, [base])
    assert made["metadata"] == {"tools": {}, "component": root}
    assert [sorted(each) for each in made["components"]] == [["bom-ref", "name", "type", "version"], ["bom-ref"]]
    assert made["dependencies"] == [{"ref": "r", "dependsOn": ["b", "p"]}, {"ref": "p"}, {"ref": "b"}]
