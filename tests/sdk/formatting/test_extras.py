"""Messages that name a package to install."""

import re
import shlex
import subprocess
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from cloudpar._formatting.extras import install_command

ROOT = Path(__file__).parents[3]
_INSTALLERS = r"(?:pip3?|pipx|uv|npm|pnpm|yarn|bun) (?:install|add|i)|npx|bunx|uvx"
OURS = re.compile(rf"""(?:{_INSTALLERS})\b[^\n`;]*?[ \t]["']?(?:cloudpar|@cloudpar/\w+)\b(?![-\w/.]*(?:\.tgz|\.whl))""")
"""A command that would install a package of our name from an index."""


@pytest.mark.parametrize("extra", ["aws", "plot"])
def test_the_command_names_the_packages_of_the_extra_and_not_this_project(extra: str) -> None:
    _, minus_m, pip, install, *packages = shlex.split(install_command(extra))
    assert (minus_m, pip, install) == ("-m", "pip", "install")
    assert packages
    assert not any(each.startswith("cloudpar") for each in packages)


def test_without_metadata_the_command_is_for_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("cloudpar._formatting.extras.requires", missing)
    assert install_command("aws") == "pip install '.[aws]' in a checkout of Cloud Parallelizer"


@pytest.mark.parametrize("text", ["pip install 'cloudpar[aws]'", "pip install cloudpar", "npm install @cloudpar/sdk"])
def test_a_hint_to_install_our_name_from_an_index_is_recognized(text: str) -> None:
    assert OURS.search(text)


def test_no_hint_and_no_page_installs_our_names_from_an_index() -> None:
    """The names are not registered there, so a stranger could upload a package under them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    kinds = {".py", ".md", ".ts", ".js", ".sh", ".toml", ".json", ".yml", ".yaml", ".ipynb"}
    names = [name for name in listed.decode().split("\0") if Path(name).suffix in kinds]
    paths = [ROOT / name for name in names if not name.startswith("tests/") and name != "package-lock.json"]
    texts = {path: path.read_text(encoding="utf-8") for path in paths if path.exists()}
    assert {str(path): found[0] for path, text in texts.items() if (found := OURS.search(text))} == {}
