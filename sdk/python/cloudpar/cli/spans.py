"""Durations as users write them: 90s, 10m, 2h, 3d, 1h30m. Messages carry them as integer microseconds."""

import re
from decimal import Decimal

import click

_UNITS_US = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000}
LARGEST_US = 2**62
"""The longest duration in microseconds (146,000 years). A message can hold the sum of two such durations."""

LARGEST_HOURS = LARGEST_US // _UNITS_US["h"]

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")


def parse(text: str) -> int:
    """Return the microseconds of a duration, which may be negative.

    Raises:
        ValueError: The text is not a duration, or the duration is longer than LARGEST_US.

    Example:
        >>> parse("90s"), parse("1h30m"), parse("0.5d"), parse("-10m")
        (90000000, 5400000000, 43200000000, -600000000)
    """
    unsigned = text.strip().removeprefix("-")
    parts = _PART.findall(unsigned)
    if not parts or "".join(number + unit for number, unit in parts) != unsigned:
        raise ValueError(f"{text!r} is no span of time: write it as 90s, 10m, 2h, 3d or 1h30m")
    microseconds = sum(int(Decimal(number) * _UNITS_US[unit]) for number, unit in parts)
    if microseconds > LARGEST_US:
        raise ValueError(f"{text!r} is too long: a span has at most {LARGEST_US // _UNITS_US['d']:,}d")
    return -microseconds if text.strip().startswith("-") else microseconds


def show(microseconds: int) -> str:
    """Return a duration as text: in its two largest units, or with three digits if it is below a minute.

    Example:
        >>> show(5_400_000_000), show(90_000_000), show(1_234_567), show(12_345), show(0)
        ('1h 30m', '1m 30s', '1.23s', '12.3ms', '0s')
    """
    if microseconds < 0:
        return f"-{show(-microseconds)}"
    if microseconds < 60_000_000:
        if microseconds >= 1_000_000 or microseconds == 0:
            return f"{microseconds / 1_000_000:.3g}s"
        return f"{microseconds / 1_000:.3g}ms"
    units = [(unit, size) for unit, size in _UNITS_US.items() if unit != "ms"]
    at = next(number for number, (_, size) in enumerate(units) if microseconds >= size)
    parts = []
    for unit, size in units[at : at + 2]:
        count, microseconds = divmod(microseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts)


class Span(click.ParamType[int]):
    """A duration on the command line, in microseconds."""

    name = "span"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse the user's text."""
        try:
            return parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
