"""The same vectors in TypeScript. `make test` runs them as a part of TypeScript's own tests."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

SDK = Path(__file__).parents[2] / "sdk/typescript"
VECTORS = "tests/unit/g13-vectors.test.ts"


def test_typescript_reads_and_writes_the_vectors(reached: Callable[[str], None]) -> None:
    vitest = SDK.parents[1] / "node_modules/.bin/vitest"
    command = [str(vitest), "run", "--no-color", VECTORS]
    ended = subprocess.run(command, cwd=SDK, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    passed = re.search(r"Tests +(\d+) passed", ended.stdout)
    assert passed is not None, ended.stdout
    reached(f"TypeScript: {passed[1]} tests of the vectors of every release, equal to the byte")
