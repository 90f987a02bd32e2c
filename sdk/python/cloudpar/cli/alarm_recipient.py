"""The recipient of a deployment's alarms. Without an address the stack has no alarms for operators."""

import sys
from typing import Final

import click

from cloudpar.deployment.settings import Request
from cloudpar.deployment.update import Update

SETTING: Final = "alarmEmail"

NONE: Final = (
    "Alarms: none, because no address gets them. If the master fails or instances do not start, only its users notice. "
    "To get a mail, add --set alarmEmail=you@example.com (0.40 USD a month)."
)


def settle(update: Update, request: Request, *, yes: bool) -> Update:
    """Prompt for the address that gets the alarms, if the deployment is new and its operator has not named one.

    The function does not ask if there is no terminal, or if the operator gave --yes or --unset alarmEmail. A new
    deployment then has no alarms, unless its settings name an address.

    Returns:
        The deployment, with the address that the operator has given.
    """
    named = SETTING in update.settings or SETTING in request.unset
    if named or yes or update.template is not None or sys.stdin is None or not sys.stdin.isatty():
        return update
    answer = click.prompt(
        "Address that gets a mail when the master fails or instances do not start (Enter: none)",
        default="", show_default=False, err=True,
    ).strip()  # fmt: skip
    return update.with_setting(SETTING, answer) if answer else update
