"""CONTRIBUTING.md names files, folders and tests that exist, and makes the recipes' promises about them."""

import re
from typing import Final

import pytest

from cloudpar_protocol.version import __version__
from docs.pages import ROOT, blocks

PAGE: Final = ROOT / "CONTRIBUTING.md"
TEXT: Final = PAGE.read_text(encoding="utf-8")
NAMED: Final = sorted(name for name in set(re.findall(r"`([^`\s]+)`", TEXT)) if re.search(r"/|\.(?:md|toml)$", name))
RECIPES: Final = re.findall(r"^## Recipe: (.*)$", TEXT, re.MULTILINE)


@pytest.mark.parametrize("name", NAMED)
def test_a_file_that_the_page_names_exists(name: str) -> None:
    assert (ROOT / name).exists()


def test_every_folder_of_the_tree_exists() -> None:
    tree = next(block.text for block in blocks(PAGE) if block.language == "text")
    parent = ROOT
    for line in tree.splitlines():
        if not line.startswith(" "):
            parent = ROOT / line.split()[0]
            assert parent.is_dir(), line
        for folder in re.findall(r"\S+/(?=\s)", f"{line}\n") if line.startswith(" ") else ():
            assert any(path.is_dir() for path in parent.rglob(folder)), line


def test_the_vectors_to_write_again_are_those_of_the_current_version() -> None:
    """Those of an earlier one are published, and must stay."""
    assert re.findall(r"vectors/v(.*)\.json", TEXT) == [__version__]


def test_the_page_has_a_recipe_for_each_frequent_change() -> None:
    assert RECIPES == [
        "a new limit of an account", "a new storage adapter", "a new command", "a new outcome of a task",
        "a new field of a package", "a new message",
    ]  # fmt: skip


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_names_the_files_to_change_and_tests(recipe: str) -> None:
    section = TEXT.partition(f"## Recipe: {recipe}\n")[2].partition("\n## ")[0]
    assert section.count("\n| `") >= 3
    assert re.search(r"`(?:tests|sdk/typescript/tests)/", section)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("Policy", "functions/cloudpar_master/core/policy.py"),
        ("POLICY", "functions/cloudpar_master/adapters/aws/backend.py"),
        ("largestLimits", "infra/lib/contract.json"),
        ("workerRoutes", "infra/lib/contract.json"),
        ("Running.of", "functions/cloudpar_master/ports/package_store.py"),
        ("packages_unsettled", "functions/cloudpar_master/adapters/embedded/database.py"),
        ("Identity", "functions/cloudpar_master/core/head/package.py"),
        ("Head.first", "functions/cloudpar_master/core/head/package.py"),
        ("FACTORIES", "tests/support/stores.py"),
        ("Outcome", "sdk/protocol/cloudpar_protocol/errors.py"),
        ("OUTCOME_ERRORS", "sdk/typescript/src/errors.ts"),
        ("MapOptions.completed", "sdk/python/cloudpar/_arguments/map_options.py"),
        ("Keywords", "sdk/python/cloudpar/_pool/map_methods.py"),
        ("TaskOptions", "sdk/typescript/src/options.ts"),
        ("startMessage", "sdk/typescript/src/orders.ts"),
        ("Sending", "functions/cloudpar_master/ports/task_queue.py"),
        ("sending", "functions/cloudpar_master/services/chunk_text.py"),
        ("Line", "functions/cloudpar_master/core/turns.py"),
        ("ROUTES", "sdk/protocol/cloudpar_protocol/routes.py"),
    ],
)
def test_what_a_recipe_names_in_a_file_is_there(name: str, file: str) -> None:
    assert f"`{name}`" in TEXT
    source = (ROOT / file).read_text(encoding="utf-8")
    assert all(re.search(rf"\b{part}\b", source) for part in name.split("."))
