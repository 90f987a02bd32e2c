"""The programs of other libraries on the page "coming from"."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench import coming_from

from docs.pages import ROOT, blocks
from docs.test_tables import table

SECTIONS = ["concurrent.futures", "joblib", "Dask", "Ray", "Lithops", ".NET's Parallel.For"]


def test_the_standard_librarys_program_prints_what_ours_prints(tmp_path: Path) -> None:
    (pair,) = [each for each in coming_from.pairs() if "concurrent.futures" in each.there]
    assert coming_from.run(pair.there, tmp_path) == pair.prints


@pytest.mark.parametrize("pair", coming_from.pairs(), ids=lambda pair: pair.library)
def test_a_program_of_another_library_is_python(pair: coming_from.Pair) -> None:
    assert ast.parse(pair.there).body
    assert pair.library
    assert pair.prints


def test_each_library_has_programs_and_a_table() -> None:
    there = [block.language for block in blocks(coming_from.PAGE) if block.language in {"py", "csharp"}]
    here = [block for block in blocks(coming_from.PAGE) if block.language == "python"]
    assert (len(there), len(here)) == (len(SECTIONS), len(SECTIONS))
    assert all(len(table(coming_from.PAGE, f"## {name}")) > 4 for name in SECTIONS)


def test_a_proxy_of_the_environment_is_not_used(tmp_path: Path) -> None:
    """The FAQ says so: nothing listens at this proxy, and a pool works nevertheless."""
    program = "from cloudpar import Pool\nwith Pool(workers=1) as pool:\n    print(pool.submit(abs, -3).result())\n"
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=os.environ | proxies, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert (ended.stdout, ended.stderr) == ("3\n", "")
    assert "do not use `HTTP_PROXY`" in (ROOT / "docs/faq.md").read_text()
