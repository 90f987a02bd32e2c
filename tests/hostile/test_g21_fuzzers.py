"""The fuzzers themselves, in their own venv (requirements/fuzz.txt): they find inputs that no author thought of."""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloudpar_protocol.limits import HOLD_S
from support.master_process import TOKENS, Master

ROOT = Path(__file__).parents[2]
BIN = ROOT / "build/fuzz/bin"
SOURCES = ("sdk/protocol", "functions", "tests")
RUNS = {"decoding": 2_000_000, "server": 100_000, "function": 50_000}
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance"
TAGS = {"client": "user_token", "worker": "worker_token", "account": "admin_token"}


@pytest.mark.parametrize("what", RUNS)
def test_g21_atheris_finds_no_fault(what: str, tmp_path: Path, reached: Callable[[str], None]) -> None:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(ROOT / source) for source in SOURCES),
        "TMPDIR": str(tmp_path),
    }
    command = [str(BIN / "python"), "-m", "hostile.fuzz", what, str(RUNS[what]), str(tmp_path / "found")]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    said = ended.stderr.decode(errors="replace")
    assert ended.returncode == 0, said[-5_000:]
    done = re.search(r"number_of_executed_units: (\d+)", said)
    slowest = re.search(r"slowest_unit_time_sec: +(\d+)", said)
    assert done is not None
    assert slowest is not None
    assert int(done[1]) >= RUNS[what]
    reached(f"atheris on {what}: {int(done[1]):,} executions, no 5xx, the slowest under {int(slowest[1]) + 1} s")


@pytest.mark.parametrize("tag", TAGS)
def test_g21_schemathesis_finds_no_fault(tag: str, tmp_path: Path, reached: Callable[[str], None]) -> None:
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(_soon(json.loads((ROOT / "docs/openapi.json").read_bytes()))))
    with Master(tmp_path / "data", stdin=True) as master:
        command = [
            str(BIN / "schemathesis"), "run", str(document), "--url", master.endpoint, "--seed", "1", "--no-color",
            "--header", f"Authorization: Bearer {TOKENS[TAGS[tag]]}", "--include-tag", tag, "--checks", CHECKS,
            "--phases", "coverage,fuzzing", "--max-examples", "200", "--request-timeout", str(2 * HOLD_S),
        ]  # fmt: skip
        with tempfile.TemporaryDirectory() as elsewhere:
            ended = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout[-5_000:] + ended.stderr[-2_000:]
        code, errors = master.end()
    assert (code, "Traceback" in errors.decode()) == (0, False)
    cases = re.search(r"(\d+) generated, (\d+) passed", ended.stdout)
    assert cases is not None, ended.stdout
    assert cases[1] == cases[2]
    reached(f"schemathesis on the {tag} routes: {int(cases[1]):,} cases, no 5xx, statuses and media as documented")


def _soon(value: Any) -> Any:
    """Remove a request's holding time from the document: a request that is held is not a hang."""
    if isinstance(value, dict):
        kept = {name: _soon(inner) for name, inner in value.items()}
        if "hold_s" in kept and "maximum" in kept["hold_s"]:
            kept["hold_s"] |= {"maximum": 0.05}
        return kept
    return [_soon(inner) for inner in value] if isinstance(value, list) else value
