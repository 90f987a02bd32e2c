"""Java programs that stand in for AWS. Maven downloads each of them once into a folder that git ignores."""

import fcntl
import shutil
import subprocess
from pathlib import Path

CACHE = Path(__file__).parents[2] / "build" / "java"

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>cloudpar</groupId><artifactId>test-engine</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""


def jars(group: str, artifact: str, version: str) -> Path:
    """Return the folder with a program and its dependencies."""
    folder = CACHE / f"{artifact}-{version}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may download at once
        if not folder.exists():
            _fetch(folder, POM.format(group=group, artifact=artifact, version=version))
    return folder


def _fetch(folder: Path, pom: str) -> None:
    maven = shutil.which("mvn")
    if maven is None or shutil.which("java") is None:
        raise RuntimeError("the tests of the AWS adapters need Java 17 and Maven (Debian: apt install maven)")
    fresh = folder.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    (fresh / "pom.xml").write_text(pom)
    subprocess.run(
        [maven, "-q", "-B", "-f", str(fresh / "pom.xml"), "dependency:copy-dependencies", "-DoutputDirectory=."],
        cwd=fresh, check=True,
    )  # fmt: skip
    fresh.rename(folder)
