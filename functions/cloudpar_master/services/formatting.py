from datetime import UTC, datetime


def moment(at: float) -> str:
    """Format a time, in seconds since 1970, for people.

    >>> moment(0.0)
    '1970-01-01 00:00:00 UTC'
    """
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def span(us: int) -> str:
    """Format a length of compute time, in microseconds, for people.

    >>> span(2_000_000), span(5_400_000_000)
    ('2 s', '1.5 h')
    """
    return f"{us / 1e6:g} s" if us < 3_600_000_000 else f"{us / 3.6e9:g} h"
