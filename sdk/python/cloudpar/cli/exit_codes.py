"""The meaning of the command line's exit codes.

    0  done
    1  failure: any error without a code of its own
    2  usage: unknown command or option, or an option, a file or a setting that is missing or not valid
    3  token: unknown, revoked, or not good for this command
    4  unreachable: no master answers at the endpoint
    5  not found: no such package, account or stack, or it is gone
    6  quota: the account has no compute time left
    7  port: another process listens on the port
    8  deployment: AWS refused, or the CDK or a tool on this machine failed
    130  interrupted, or you answered a question with no

After Ctrl-C, `cloudpar up` and `cloudpar top` end with 0, and so does `cloudpar worker` when it has drained. `cloudpar
worker` ends with 4 also if it could not publish its last results, and with 128 plus the number of a signal if this
signal ended its agent while it drained.

The codes are stable: scripts may rely on them.
"""

from cloudpar.deployment.failures import DeploymentError
from cloudpar.errors import ConfigurationError
from cloudpar_protocol.errors import (
    CloudparError,
    Forbidden,
    Gone,
    InvalidToken,
    MasterUnreachable,
    NotFound,
    QuotaExhausted,
    TaskQuotaExceeded,
)

DONE = 0
FAILURE = 1
USAGE = 2
TOKEN = 3
UNREACHABLE = 4
NOT_FOUND = 5
QUOTA = 6
PORT = 7
DEPLOYMENT = 8
INTERRUPTED = 130


class PortInUse(CloudparError):
    """Another process listens on the port that `cloudpar up` needs."""


_BY_ERROR: tuple[tuple[type[CloudparError], int], ...] = (
    (InvalidToken, TOKEN),
    (Forbidden, TOKEN),
    (ConfigurationError, USAGE),
    (MasterUnreachable, UNREACHABLE),
    (NotFound, NOT_FOUND),
    (Gone, NOT_FOUND),
    (QuotaExhausted, QUOTA),
    (TaskQuotaExceeded, QUOTA),
    (PortInUse, PORT),
    (DeploymentError, DEPLOYMENT),
)


def exit_code(error: CloudparError) -> int:
    """Return the exit code for an error."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), FAILURE)
