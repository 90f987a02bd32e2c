"""The whole command line: its commands, and how errors are shown."""

import sys
from collections.abc import Sequence

import click

from cloudpar_protocol.errors import CloudparError

from .account import account
from .demo import demo
from .deploy import deploy
from .destroy import destroy
from .doctor import doctor
from .exit_codes import DONE, FAILURE, INTERRUPTED, USAGE, exit_code
from .packages import packages
from .presentation import printable
from .status import status
from .top import top
from .up import up
from .usage import usage
from .version import TEXT, version
from .worker import worker
from .worker_token import worker_token
from .workers import workers


@click.group(
    commands=[
        up, worker, worker_token, workers, account, usage, packages, top, deploy, status, destroy, demo, doctor,
        version,
    ]
)  # fmt: skip
@click.version_option(message=TEXT)
def application() -> None:
    """A distributed thread pool, on this machine or on a fleet of your own."""


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; an error is one line on standard error."""
    try:
        result = application.main(list(arguments), prog_name="cloudpar", standalone_mode=False)
    except click.Abort:
        return INTERRUPTED
    except (click.ClickException, CloudparError, OSError) as error:
        return _report(error)
    return result if isinstance(result, int) else DONE


def _report(error: click.ClickException | CloudparError | OSError) -> int:
    message, code = str(error), FAILURE
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return USAGE
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "cloudpar"
        message, code = f"{error.format_message()} (see `{path} --help`)", USAGE
    elif isinstance(error, CloudparError):
        code = exit_code(error)
    # The message may quote names that other users have chosen.
    sys.stderr.write(f"cloudpar: error: {printable(' '.join(message.split()))}\n")
    return code
