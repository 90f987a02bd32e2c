"""A worker's agent: `python -m cloudpar_worker --stdin` reads its settings from a JSON line on standard input.

`python -m cloudpar_worker --check` prints, as JSON, what this machine offers to confine tasks.
"""

import argparse
import os
import sys
import tempfile

import msgspec
from msgspec.structs import replace

from cloudpar_worker.sandbox.confinement import (
    closed_ports,
    costs,
    extras,
    gaps,
    has_own_users,
    keeps_offline,
    mechanisms,
    refusal,
    sentence,
)
from cloudpar_worker.sandbox.instance_metadata import answering, services
from cloudpar_worker.sandbox.kernel import hide_memory, rest_capabilities
from cloudpar_worker.sandbox.limits import keep_descriptors
from cloudpar_worker.sandbox.unix_sockets import open_sockets
from cloudpar_worker.sandbox.unused_mechanisms import unused_mechanisms
from cloudpar_worker.shell.settings import parse
from cloudpar_worker.shell.unreadable import unreadable
from cloudpar_worker.shell.zygotes import Zygotes


def main() -> int:
    """Run an agent until it ends, or print the answer to --check; return the exit code.

    The code is 2 if the settings are not valid, or if a shared worker must not start here.
    """
    parser = argparse.ArgumentParser(prog="python -m cloudpar_worker", description=__doc__)
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument(
        "--stdin",
        action="store_true",
        help="read {endpoint, token, executors, ...: see settings.py} as a JSON line; the agent ends with this input",
    )
    wanted.add_argument("--check", action="store_true", help="print what this machine offers to confine tasks")
    if parser.parse_args().check:
        found = [*mechanisms(tempfile.gettempdir(), answering(services()), open_sockets()), *unused_mechanisms()]
        print(msgspec.json.encode(found).decode())
        return 0
    hide_memory()  # before it contains the token
    try:
        with open(0, "rb", buffering=0, closefd=False) as stdin:
            settings = parse(stdin.readline())
    except ValueError as error:
        print(f"cloudpar worker: {error}", file=sys.stderr)
        return 2
    confinement, found = settings.confinement, []
    if confinement:
        keep_descriptors()
        # Executors without a network cannot reach a metadata service, so the worker need not close the port of the
        # service.
        metadata = answering(services()) if confinement.network == "outbound" else []
        found = mechanisms(confinement.tmp, metadata, open_sockets())
        confinement = replace(confinement, closed_ports=closed_ports(metadata))
    if refused := refusal(found, settings.network):
        print(f"cloudpar worker: {refused}", file=sys.stderr)
        return 2
    if missing := gaps(found):
        print(f"cloudpar: warning: {sentence(missing)}", file=sys.stderr, flush=True)
    if has_own_users(found) and (shut := ", ".join(unreadable(settings.readable))):
        fix = "let other users read it and enter all folders above it, or name a copy elsewhere by --readable"
        print(f"cloudpar: warning: tasks cannot read {shut}: {fix}", file=sys.stderr, flush=True)
    if missing_extras := extras(found):
        print(f"cloudpar: {missing_extras}", file=sys.stderr, flush=True)
    for cost in costs(found):
        print(f"cloudpar: {cost}", file=sys.stderr, flush=True)
    zygotes = Zygotes(settings, confinement)
    rest_capabilities()
    from cloudpar_worker.shell.agent import Agent  # noqa: PLC0415 - these imports run while the zygote starts

    try:
        agent = Agent(settings, zygotes, stdin=0, own_users=has_own_users(found), offline=keeps_offline(found))
    except ValueError as error:  # the endpoint or the token cannot be sent
        print(f"cloudpar worker: {error}", file=sys.stderr)
        return 2
    code = agent.run()
    zygotes.close()
    return code


if __name__ == "__main__":
    exit_code = main()
    sys.stdout.flush()
    os._exit(exit_code)  # so that the process does not wait for threads whose requests a silent master holds
