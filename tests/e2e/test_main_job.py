"""The demo's main job, single calls, results that another process reads, and the JavaScript SDK."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cloudpar.demo.factorization import correct, factorize
from cloudpar.errors import Gone
from support.books import close_books
from support.command import cloudpar_json, environment
from support.customer import Customer
from support.task_functions import NUMBERS, TASKS, mark_and_wait
from support.waiting import await_file

from .deployment import ROOT, STACK, Deployment, run

TYPESCRIPT = ROOT / "sdk" / "typescript"


def test_the_main_job_completes(cluster: Deployment) -> None:
    customer = Customer(cluster, "main")
    with customer.pool() as pool:
        results = pool.map(factorize, NUMBERS)
        assert results.package_id is not None
        books = close_books(cluster, customer.token, results.package_id)
        assert correct(NUMBERS, list(results))
    assert books.last.state == "completed"
    customer.assert_charged_once(books, TASKS)


def test_the_futures_of_many_submits_get_their_results(cluster: Deployment) -> None:
    with Customer(cluster, "submits").pool() as pool:
        futures = [pool.submit(pow, number, 2) for number in range(300)]
        assert [future.result() for future in futures] == [number**2 for number in range(300)]


READER = """
import sys
from cloudpar import Pool
with Pool(progress=False) as pool:
    package = pool.attach(sys.argv[1])
    print(package.results())
    package.acknowledge()
"""


def test_another_process_fetches_the_results(cluster: Deployment, tmp_path: Path) -> None:
    customer, running, gate = Customer(cluster, "reader"), tmp_path / "running", tmp_path / "gate"
    with customer.pool() as pool:
        pool.map(mark_and_wait, [(str(running), str(gate))] * 3)
        (package_id,) = pool.detach()
    await_file(running)
    gate.touch()
    reader = subprocess.run(
        [sys.executable, "-c", READER, package_id], capture_output=True, text=True, check=False,
        env=environment(CLOUDPAR_ENDPOINT=cluster.endpoint, CLOUDPAR_TOKEN=customer.token),
    )  # fmt: skip
    assert (reader.stdout, reader.stderr) == ("['done', 'done', 'done']\n", "")
    with customer.pool() as pool, pytest.raises(Gone):
        pool.attach(package_id).results()  # the other process has acknowledged it


def test_the_program_in_the_javascript_readme_prints_what_the_readme_shows(cluster: Deployment) -> None:
    """The token comes from an operator's secret. The endpoint is given: the stack's own host name is not resolved."""
    run(["npm", "run", "--silent", "build", "--workspace", "sdk/typescript"], dict(os.environ))
    readme = (TYPESCRIPT / "README.md").read_text()
    # The second example imports no module of the reader's own.
    code, output = (re.findall(rf"```{name}\n(.*?)```", readme, re.DOTALL)[1] for name in ("js", "text"))
    assert "math:factorial" in code
    # Node finds the package by its name only from within its folder.
    script = TYPESCRIPT / "build" / "readme-on-aws.mjs"
    script.parent.mkdir(exist_ok=True)
    script.write_text(code)
    cloudpar_json("account", "create", "javascript", "--hours", "1", "--secret", "javascript", *cluster.admin())
    variables = environment(
        CLOUDPAR_ENDPOINT=cluster.endpoint, CLOUDPAR_STACK=STACK, CLOUDPAR_TOKEN_SECRET="javascript"
    )
    variables["NODE_NO_WARNINGS"] = "1"  # AWS's SDK warns of future versions of Node
    assert run(["node", str(script)], variables) == output
