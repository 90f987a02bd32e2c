"""The stand-ins for AWS: moto in this process; DynamoDB Local, ElasticMQ, ministack and versitygw as processes.

Each starts at its first use, and `stop` ends them all.
"""

import atexit
import logging
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import IO

import urllib3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from e2e.stand_in import StandIn, free_port

from .downloads import jars
from .signed_links import Checked

READY_S = 60.0

VERSITYGW = Path(__file__).parents[2] / "build" / "versitygw" / "versitygw"

LIFE_LINE = '"$@" & cat; kill -9 $!'
"""Runs a program until its standard input ends: at `stop`, or with this process, even if it is killed."""

running = ExitStack()

in_front_of_moto = Checked(DomainDispatcherApplication(create_backend_app))


class _Silent(WSGIRequestHandler):
    protocol_version = "HTTP/1.0"

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


def stop() -> None:
    running.close()
    for start in (moto, moto_with_permissions, dynamodb_local, elasticmq, ministack, versitygw):
        start.cache_clear()


atexit.register(stop)


@cache
def moto() -> str:
    """Return moto's endpoint. It serves one request at a time: with several threads its conditional writes fail.

    It does not check signatures; `in_front_of_moto` checks those of links.
    """
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, in_front_of_moto, threaded=False, request_handler=_Silent)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()

    def end() -> None:
        server.shutdown()
        thread.join()
        server.server_close()

    running.callback(end)
    return f"http://127.0.0.1:{server.server_port}"


@cache
def moto_with_permissions() -> str:
    """Return the endpoint of a moto in a process of its own.

    After a POST of "0" to /moto-api/reset-auth it checks signatures, and what IAM permits. This holds for a whole
    process, so the moto in this process cannot do it.
    """
    folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
    port = free_port()
    _start([sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)], folder, port)
    return f"http://127.0.0.1:{port}"


@cache
def dynamodb_local() -> str:
    """Return the endpoint of DynamoDB Local, AWS's own engine, in memory."""
    lib = jars("com.amazonaws", "DynamoDBLocal", "2.6.1")
    port = free_port()
    _start_java(
        lib, ["-Djava.library.path=.", "com.amazonaws.services.dynamodbv2.local.main.ServerRunner",
              "-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port)], port,
    )  # fmt: skip
    return f"http://127.0.0.1:{port}"


@cache
def elasticmq() -> str:
    lib = jars("org.elasticmq", "elasticmq-server_2.13", "1.7.1")
    port = free_port()
    folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
    (folder / "elasticmq.conf").write_text(
        'include classpath("application.conf")\n'
        f'node-address {{ host = "127.0.0.1", port = {port} }}\n'
        f'rest-sqs {{ bind-hostname = "127.0.0.1", bind-port = {port} }}\n'
        "rest-stats { enabled = false }\n"
    )
    _start_java(lib, [f"-Dconfig.file={folder / 'elasticmq.conf'}", "org.elasticmq.server.Main"], port)
    return f"http://127.0.0.1:{port}"


@cache
def ministack() -> str:
    """Return the endpoint of ministack, which `make e2e` installs."""
    folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
    return running.enter_context(StandIn(folder)).url


@cache
def versitygw() -> str:
    """Return the endpoint of versitygw, which checks signatures, checksums and conditions as S3 does.
    `make versitygw` builds it, if Go is installed."""
    port = free_port()
    folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
    where = ["--port", f"127.0.0.1:{port}", "--region", "us-east-1", "--access", "test", "--secret", "test"]
    _start([str(VERSITYGW), *where, "posix", str(folder)], folder, port)
    return f"http://127.0.0.1:{port}"


def _start_java(lib: Path, arguments: list[str], port: int) -> None:
    options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx512m"]
    _start(["java", *options, "-cp", "*", *arguments], lib, port)


def _start(command: list[str], folder: Path, port: int) -> None:
    log = running.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    process = subprocess.Popen(
        ["/bin/sh", "-c", LIFE_LINE, "engine", *command],
        cwd=folder, stdin=subprocess.PIPE, stdout=log, stderr=log,
    )  # fmt: skip

    def end() -> None:
        process.communicate()

    running.callback(end)
    _wait(process, port, log)


def _wait(process: "subprocess.Popen[bytes]", port: int, log: IO[bytes]) -> None:
    """Wait until the process answers any request."""
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    deadline = time.monotonic() + READY_S
    patience = urllib3.Retry(total=20, backoff_factor=0.02, backoff_max=0.1)
    with urllib3.HTTPConnectionPool("127.0.0.1", port, retries=patience, timeout=READY_S) as pool:
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(urllib3.exceptions.HTTPError):
                pool.request("GET", "/")
                return
    log.seek(0)
    raise RuntimeError(f"the engine on port {port} did not start: {log.read()[-2000:].decode(errors='replace')}")
