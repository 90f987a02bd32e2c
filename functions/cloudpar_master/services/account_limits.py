from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import AccountRecord, Running
from cloudpar_protocol.client_messages import StartTasks
from cloudpar_protocol.errors import RateLimited, TooLarge

FULL_S = 0.5
"""The delay, in seconds, that the refusal of a start names. After each further refusal the client waits longer."""

OPERATOR = "ask the operator for a higher limit"


def check_fits(account: AccountRecord, tasks: int, data_bytes: int, policy: Policy) -> None:
    """Check that a package may run if no other package of its account runs.

    Raises:
        TooLarge: The package alone exceeds a limit, so waiting would not help.
    """
    if tasks > policy.running_tasks:
        text = f"{tasks:,} tasks are over the {policy.running_tasks:,} that account {account.name!r} may have running"
        raise TooLarge(f"{text}: pass `buffersize=` to map, split the package, or {OPERATOR}")
    if data_bytes > policy.running_bytes:
        text = f"{data_bytes:,} bytes of task data are over the {policy.running_bytes:,} that account {account.name!r}"
        remedies = f"let tasks read their data from storage, send fewer together (`buffersize=` of map), or {OPERATOR}"
        raise TooLarge(f"{text} may have running: {remedies}")


def check_room(account: AccountRecord, request: StartTasks, data_bytes: int, running: Running, policy: Policy) -> None:
    """Check that a package may run beside the packages of its account that run already.

    Raises:
        RateLimited: The account would exceed a limit, so the package may start only after others have ended.
    """
    for held, asked, most, what in (
        (running.packages, 1, policy.running_packages, "packages"),
        (running.tasks, request.n, policy.running_tasks, "tasks"),
        (running.data_bytes, data_bytes, policy.running_bytes, "bytes of task data"),
    ):
        if held + asked > most:
            text = f"account {account.name!r} has {held:,} {what} running, of {most:,} that it may have"
            raise RateLimited(f"{text}: this start waits until some have ended, or {OPERATOR}", FULL_S)
