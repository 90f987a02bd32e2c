"""`python -m cloudpar_master --data DIR` runs the embedded master on 127.0.0.1, or on a socket that it inherits."""

import argparse
import errno
import gc
import logging
import os
import socket
import sqlite3
import sys
from pathlib import Path

import msgspec

from cloudpar_protocol.frames import SOCKET
from cloudpar_protocol.link_urls import OWN_MASTER

from .server.data_folder import Connection, DataFolder, DataFolderError
from .server.startup_config import StartupConfig, parse

BACKLOG = 512
PORT = 8642
DATES = "%Y-%m-%d %H:%M:%S"


def main() -> int:
    """Run a master until SIGTERM or SIGINT ends it or, with `--stdin`, until its parent ends.

    Returns:
        The exit code: 0 after such an end, 1 if the master cannot run, 2 if its standard input is wrong.

    Raises:
        SystemExit: The arguments are wrong (exit code 2), or the help text was printed (0).
    """
    options = _options()
    os.umask(0o077)  # only the owner may read payloads and token hashes, even if others may read the folder
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s cloudpar master: %(message)s", datefmt=DATES)
    try:
        config = _read_config() if options.stdin else StartupConfig()
        with _listen(options.listen_fd, options.port) as listening:
            _serve(options, config, listening)
    except ValueError as error:
        return _complain(error, 2)
    except (DataFolderError, OSError) as error:
        return _complain(error, 1)
    except sqlite3.Error as error:
        return _complain(f"the database in {options.data} cannot be used: {error}", 1)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m cloudpar_master", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the folder that holds everything")
    parser.add_argument("--port", type=_port, default=PORT, help=f"0 takes a free one (default: {PORT})")
    parser.add_argument("--listen-fd", type=int, metavar="FD", help="an inherited socket that listens already")
    parser.add_argument(
        "--stdin", action="store_true",
        help="read {user_token, worker_token, admin_token, settings} as a JSON line; the master ends with this input",
    )  # fmt: skip
    parser.add_argument("--new-secret", action="store_true", help="go on although the database has another secret")
    return parser.parse_args()


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port < 2**16:
        raise argparse.ArgumentTypeError(f"{port} is no port: choose one from 1 to 65535, or 0 for any free one")
    return port


def _read_config() -> StartupConfig:
    with open(0, "rb", buffering=0, closefd=False) as stdin:
        return parse(stdin.readline())


def _listen(descriptor: int | None, port: int) -> socket.socket:
    if descriptor is not None:
        return socket.socket(fileno=descriptor)
    try:
        return socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        text = f"port {port} is in use by another process: end that one, or choose another by --port (0: any free one)"
        raise OSError(text) from None


def _serve(options: argparse.Namespace, config: StartupConfig, listening: socket.socket) -> None:
    folder = DataFolder(options.data.absolute())
    host, port = listening.getsockname()
    connection = folder.connect(
        Connection(
            endpoint=f"http://{host}:{port}",
            token=config.user_token,
            worker_token=config.worker_token,
            admin_token=config.admin_token,
        )
    )
    from .server.assembly import assemble  # noqa: PLC0415 - errors in the arguments come before the slow imports
    from .server.process import run  # noqa: PLC0415 - errors in the arguments come before the slow imports

    of_pool = OWN_MASTER in os.environ
    assembly = assemble(folder, connection, config.settings, new_secret=options.new_secret, of_pool=of_pool)
    gc.freeze()  # imported modules stay, so the garbage collector need not check them each time
    local = folder.path / SOCKET if of_pool else None
    run(assembly, listening, lambda: _announce(connection.endpoint), 0 if options.stdin else None, local)


def _announce(endpoint: str) -> None:
    os.write(1, msgspec.json.encode({"event": "ready", "endpoint": endpoint}) + b"\n")


def _complain(error: object, code: int) -> int:
    print(f"cloudpar master: {error}", file=sys.stderr)  # noqa: T201 - the log is standard error
    return code


if __name__ == "__main__":
    sys.exit(main())
