"""The examples run with small figures."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from PIL import Image

from docs.pages import ROOT
from support import javascript_package
from support.command import environment
from support.http_server import Answer, HttpServer, Request
from support.up import Up

EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(path for path in EXAMPLES.iterdir() if path.suffix in {".py", ".mjs"})
MODULES = {"pillow": "PIL"}
"""Distributions whose module has another name."""


def script(folder: Path, name: str, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        env=environment(), cwd=folder, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def size(picture: Path) -> tuple[int, int]:
    with Image.open(picture) as image:
        return image.size


def test_the_quickstart_prints_its_results(tmp_path: Path) -> None:
    output = script(tmp_path, "quickstart.py")
    assert "primes, the first is 1000003" in output
    assert f"20! = {2432902008176640000}" in output
    assert "squares: [0, 1, 4, 9, 16, 25, 36, 49, 64, 81]" in output


def test_mandelbrot_is_complete_although_workers_come_and_go(tmp_path: Path) -> None:
    output = script(tmp_path, "mandelbrot.py", "--tile", "5", "--steps", "200")
    assert "worker 1 is killed" in output
    assert "384 tiles, by workers " in output
    for name in ("mandelbrot.png", "mandelbrot-workers.png"):
        assert size(tmp_path / name) == (120, 80)


def test_an_option_has_a_price_with_an_error(tmp_path: Path) -> None:
    output = script(tmp_path, "option_pricing.py", "--paths", "40000", "--batch", "2000")
    found = re.fullmatch(r"40,000 paths in 20 tasks: (\S+) \+/- (\S+)\n", output)
    assert found, output
    assert abs(float(found[1]) - 5.294) < 5 * float(found[2])  # the price from 400,000 paths is 5.294 +/- 0.012
    assert script(tmp_path, "option_pricing.py", "--paths", "40000", "--batch", "2000") == output


def test_a_bootstrap_gives_an_interval_around_the_figure(tmp_path: Path) -> None:
    output = script(tmp_path, "bootstrap.py", "--rows", "3000", "--resamples", "200")
    found = re.fullmatch(r"uplift (\S+) %, 95 % interval (\S+) to (\S+) %, 200 resamples\n", output)
    assert found, output
    figure, low, high = map(float, found.groups())
    assert low < figure < high


def test_a_grid_search_finds_settings_that_predict(tmp_path: Path) -> None:
    output = script(tmp_path, "grid_search.py", "--rows", "200", "--points", "4")
    assert output.startswith("80 fits; best: width ")
    assert float(output.split()[-1]) < 0.15  # the noise alone is 0.04, the mean of all points 0.25


def test_thumbnails_of_all_pictures_and_a_line_for_a_broken_one(tmp_path: Path) -> None:
    inner = tmp_path / "from/inner"
    inner.mkdir(parents=True)
    for number in range(3):
        Image.new("RGBA", (300, 200 + number), (number, 0, 0)).save(inner / f"{number}.png")
    (tmp_path / "from/broken.jpg").write_bytes(b"no picture")
    output = script(tmp_path, "thumbnails.py", "from", "to", "--size", "60")
    assert output.splitlines()[0].startswith("from/broken.jpg: cannot identify image file")
    assert output.splitlines()[-1] == "3 thumbnails in to, 1 files that are no pictures"
    assert [size(path) for path in sorted((tmp_path / "to/inner").iterdir())] == [(60, 40)] * 3


def test_a_parameter_study_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    study = "parameter_study.py", "results.jsonl", "--points", "6", "--years", "500"
    whole, results = script(tmp_path, *study), tmp_path / "results.jsonl"
    assert whole.startswith("0 of 36 points are known, 36 are computed\n")
    kept = results.read_text().splitlines(keepends=True)
    results.write_text("".join(kept[:20]) + kept[20][:9])
    again = script(tmp_path, *study)
    assert again.startswith("20 of 36 points are known, 16 are computed\n")
    assert again.splitlines()[1] == whole.splitlines()[1]
    assert sorted(map(str, map(json.loads, kept))) == sorted(
        map(str, map(json.loads, results.read_text().splitlines()))
    )


def test_an_epidemic_has_a_peak(tmp_path: Path) -> None:
    output = script(tmp_path, "epidemic.py", "--runs", "20").splitlines()
    assert output[1].startswith("  0       1")
    found = re.fullmatch(r"peak: (\S+) ill people, on day (\d+)", output[-1])
    assert found
    assert int(found[1].replace(",", "")) > 5_000
    assert 40 < int(found[2]) < 140


def site(folder: Path) -> HttpServer:
    """Serve the files of a folder on this machine."""

    def answer(request: Request) -> Answer:
        file = folder / request.path.removeprefix("/")
        return Answer(200, file.read_bytes(), {"Content-Type": "text/html"}) if file.is_file() else Answer(404)

    return HttpServer(answer)


def test_a_crawl_finds_every_page_of_a_site_and_its_broken_links(tmp_path: Path) -> None:
    for number in range(12):
        others = (2 * number + 1, 2 * number + 2)  # a tree whose last pages have broken links
        links = "".join(f'<a class="x" href="/{other}.html#part">next</a>' for other in others)
        (tmp_path / f"{number}.html").write_text(f'{links}<a href="http://127.0.0.1:1/">elsewhere</a>')
    with site(tmp_path) as server:
        url = server.endpoint
        output = script(tmp_path, "crawl.py", f"{url}/0.html", "--tasks", "2").splitlines()
        assert output[-1] == "25 pages, 13 of them broken"
        assert f"{url}/24.html: status 404" in output
        assert script(tmp_path, "crawl.py", f"{url}/0.html", "--tasks", "2", "--limit", "5").startswith("5 pages, 0 ")


def test_a_client_in_javascript(tmp_path: Path) -> None:
    """The SDK is installed from a checkout's folder as npm does it, after the package was built."""
    (tmp_path / "node_modules/@cloudpar").mkdir(parents=True)
    (tmp_path / "node_modules/@cloudpar/sdk").symlink_to(javascript_package.built())
    (tmp_path / "forecast.mjs").write_text((EXAMPLES / "forecast.mjs").read_text())
    with Up(tmp_path / "data", workers=1) as up:
        variables = environment(CLOUDPAR_ENDPOINT=up.endpoint, CLOUDPAR_TOKEN=up.connection["token"])
        ended = subprocess.run(
            [shutil.which("node") or "node", "forecast.mjs", "20"],
            env=variables, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100,
        )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == ["product 19", "product 17", "product 16"]
    assert lines[3] == "19 products, 1 without a forecast"
    assert lines[4].startswith("product 7: StatisticsError: linear regression requires that both inputs")


# all examples


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_a_program_is_short_and_listed(program: Path) -> None:
    assert len(program.read_text().splitlines()) < 80
    assert f"[{program.name}]({program.name})" in (EXAMPLES / "README.md").read_text()


@pytest.mark.parametrize("program", [path for path in PROGRAMS if path.suffix == ".py"], ids=lambda path: path.name)
def test_a_program_imports_only_what_its_command_installs(program: Path) -> None:
    tree = ast.parse(program.read_text())
    extra = re.search(r"pip install '\.\[(\w+)\]'", ast.get_docstring(tree) or "")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = project["dependencies"] + (project["optional-dependencies"][extra[1]] if extra else [])
    names = {re.split(r"[>=\[]", each)[0] for each in installed}
    known = {MODULES.get(name, name) for name in names} | {"cloudpar", "cluster", *sys.stdlib_module_names}
    imported = chain.from_iterable(
        [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )
    assert {name.partition(".")[0] for name in imported} <= known
