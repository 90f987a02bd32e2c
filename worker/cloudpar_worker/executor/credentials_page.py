"""The credentials page: a file in memory through which an executor's tasks get AWS credentials.

The agent writes the page. It does so also while a task runs, so that a long task gets new credentials in time. The
executor has a descriptor of the page. The executor's folder contains an AWS configuration file with a command that
prints the page. boto3, the AWS command line and AWS's other libraries run this command, and run it again before
credentials expire.

The page disappears with the executor, so no file with credentials stays behind. The page has no name. Other processes
can open it only in the folder of the executor's process in /proc, and the kernel refuses this to other users.
"""

import fcntl
import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from cloudpar_protocol.worker_messages import TaskCredentials

PAGE_BYTES: Final = 8192
"""The size of a page, in bytes. AWS documents no limit for session tokens; known tokens have up to about 2,000
characters.
"""

CONFIG: Final = "aws-config"
"""The name of the configuration file in the executor's folder."""


def open_page() -> int:
    """Open a new page, which only this process can write; return its descriptor.

    Raises:
        OSError: The system permits no further descriptor, or no files in memory.
    """
    descriptor = os.memfd_create("cloudpar-credentials", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, PAGE_BYTES)
        # A task can open the page again. The task must not change what the next tasks of its account read. And the task
        # must not make the page grow, because the memory of the page counts towards no limit.
        os.fchmod(descriptor, 0o444)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def write(descriptor: int, credentials: "TaskCredentials") -> None:
    """Write credentials into a page, in place of earlier ones.

    Raises:
        ValueError: The credentials are larger than a page.
    """
    expires = datetime.fromtimestamp(credentials.expires_at, UTC).isoformat(timespec="seconds")
    text = msgspec.json.encode(
        {
            "Version": 1,
            "AccessKeyId": credentials.access_key_id,
            "SecretAccessKey": credentials.secret_access_key,
            "SessionToken": credentials.session_token,
            "Expiration": expires,
        }
    )
    if len(text) > PAGE_BYTES:
        raise ValueError(f"credentials of {len(text)} bytes: a page has {PAGE_BYTES}")
    # One call writes the whole page, so that a reader sees the old credentials or the new ones.
    os.pwrite(descriptor, text.ljust(PAGE_BYTES), 0)


class CredentialsPage:
    """The executor's side of its page.

    Make this object before the first task: until then the working folder is the executor's own, and a task may change
    it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._config = f"{os.getcwd()}/{CONFIG}"
        self._offered = False

    def offer(self, region: str) -> None:
        """Let AWS's libraries in this process, and in the programs that it starts, find the page.

        The first call writes the configuration file. If the file cannot be written, the task's standard error says so.
        """
        if self._offered:
            return
        lines = ["[default]", f"credential_process = /bin/cat /proc/{os.getpid()}/fd/{self._descriptor}"]
        lines += [f"region = {region}"] if region else []
        try:
            with open(self._config, "w", encoding="utf-8") as file:
                file.write("\n".join([*lines, ""]))
        except OSError as error:  # the disk is full; the executor must not end, and a later run tries again
            print(f"cloudpar: no AWS credentials for this task: {error}", file=sys.stderr)
            return
        os.environ["AWS_CONFIG_FILE"] = self._config
        self._offered = True
