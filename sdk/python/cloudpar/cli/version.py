"""`cloudpar version`."""

import platform

import click

from cloudpar_protocol.limits import PROTOCOL_VERSION
from cloudpar_protocol.version import __version__

from .access import json_option
from .presentation import print_json

TEXT = f"cloudpar {__version__} (protocol {PROTOCOL_VERSION}, Python {platform.python_version()})"
"""What `cloudpar version` and `cloudpar --version` print."""


@click.command()
@json_option
def version(as_json: bool) -> None:
    """Print the versions of the release, the protocol and Python."""
    if as_json:
        print_json({"release": __version__, "protocol": PROTOCOL_VERSION, "python": platform.python_version()})
    else:
        click.echo(TEXT)
