from datetime import UTC, datetime


def moment(at: float) -> str:
    """Return a time, given in seconds since 1970, as text for people.

    >>> moment(0.0)
    '1970-01-01 00:00:00 UTC'
    """
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def span(us: int) -> str:
    """Return a length of compute time, given in microseconds, as text for people.

    >>> span(2_000_000), span(5_400_000_000)
    ('2 s', '1.5 h')
    """
    return f"{us / 1e6:g} s" if us < 3_600_000_000 else f"{us / 3.6e9:g} h"
