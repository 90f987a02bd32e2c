"""Changes of the master's core that its tests need not notice, each with the reason."""

from typing import Final

SURVIVORS: Final[dict[tuple[str, str, str], str]] = {
    ("effects.py", "RETRY_S = 2.0", "RETRY_S = 3.0"): (
        "how soon a timer repeats effects is a choice; the tests compare with this constant"
    ),
    ("effects.py", "SEND_AGAIN_S = 60.0", "SEND_AGAIN_S = 61.0"): "like RETRY_S",
    (
        "effects.py",
        "if life.ended and not life.settled and (not head.tasks.stopping or head.now >= (life.settle_at or 0.0)):",
        "if life.ended and not life.settled and (not head.tasks.stopping or head.now >= (life.settle_at or 1.0)):",
    ): "no clock of a master shows the first second of 1970",
    (
        "fold/life.py",
        "if not life.ended and head.now >= (life.settle_at or 0.0):",
        "if not life.ended and head.now >= (life.settle_at or 1.0):",
    ): "as in effects.py",
    ("fold/open_ranges.py", "RESERVED = 4_000", "RESERVED = 4001"): "a round figure of several thousand entries",
    ("fold/open_ranges.py", "SMALL_WINDOW = 8", "SMALL_WINDOW = 9"): (
        "a choice; test_bounds.py computes the most entries with this constant"
    ),
    ("fleet_size.py", "BOOT_US: Final = 120_000_000", "BOOT_US: Final = 120000001"): (
        "an estimate, and a microsecond changes the size of no fleet"
    ),
    (
        "fleet_size.py",
        "UNREAD: Final = Work(parts=1, total_us=None, chunks=1)",
        "UNREAD: Final = Work(parts=2, total_us=None, chunks=1)",
    ): "one chunk occupies one executor, whatever its parts are",
    ("head/package.py", "HEAD_BYTES = 396_000", "HEAD_BYTES = 396001"): (
        "a bound of the largest head, which test_bounds.py makes; a byte more is below the 400 KB of an item, too"
    ),
    ("head/tasks.py", "CANCELLED_RANGES = 200", "CANCELLED_RANGES = 201"): (
        "a round figure; the services that use it compare with this constant"
    ),
}
"""The reason for each file, line, and changed line."""
