from typing import Any

import msgspec
from msgspec import Struct

from cloudpar_master.core.policy import Policy


class StartupConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The line of JSON that a parent writes to a master's standard input.

    If a token is empty, the data folder keeps its earlier token, or gets a new token if it has none.
    """

    user_token: str = ""
    worker_token: str = ""
    admin_token: str = ""
    settings: Policy = Policy()


def parse(line: bytes) -> StartupConfig:
    """Read the line that a parent has written to standard input.

    Raises:
        ValueError: The line is not a JSON object, or a field is unknown or wrong. For a setting, the text names the
            option `--set` of `cloudpar up`.

    >>> parse(b'{"settings": {"lease_s": 2.0}}').settings.lease_s
    2.0
    """
    try:
        found = msgspec.json.decode(line, type=dict[str, Any])
        settings = msgspec.convert(found.pop("settings", {}), dict[str, Any])
        # Each setting is checked separately, so that an error can name it.
        config = msgspec.convert(found, StartupConfig)
    except msgspec.DecodeError as error:
        raise ValueError(f"the line on standard input is not what a master expects: {error}") from None
    for name, value in settings.items():
        _check(name, value)
    return msgspec.structs.replace(config, settings=msgspec.convert(settings, Policy))


def _check(name: str, value: object) -> None:
    if name not in Policy.__struct_fields__:
        raise ValueError(f"--set {name}={value}: no setting has this name; there are {', '.join(_settable())}")
    try:
        msgspec.convert({name: value}, Policy)
    except msgspec.ValidationError as error:
        raise ValueError(f"--set {name}={value}: {_reason(error)}") from None


def _settable() -> list[str]:
    """Return the names of the settings that are numbers: those that `--set` takes."""
    return [name for name in Policy.__struct_fields__ if not isinstance(getattr(Policy(), name), bool)]


def _reason(error: msgspec.ValidationError) -> str:
    """Return what is wrong with a value, without its place in the line.

    >>> _reason(msgspec.ValidationError("Expected `int` >= 1 - at `$.settings.open_packages`"))
    'expected a whole number >= 1'
    """
    text = str(error).partition(" - at ")[0].replace("Expected", "expected")
    for kind, name in {"`int`": "a whole number", "`float`": "a number", "`bool`": "true or false"}.items():
        text = text.replace(kind, name)
    return text
