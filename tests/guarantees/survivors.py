"""Changes of the master's core that its tests need not notice, each with the reason."""

from typing import Final

SURVIVORS: Final[dict[tuple[str, str, str], str]] = {
    ("effects.py", "RETRY_S = 2.0", "RETRY_S = 3.0"): (
        "how soon a timer repeats effects is a choice; the tests compare with this constant"
    ),
    ("effects.py", "LATE_PAUSES = 10", "LATE_PAUSES = 11"): "like RETRY_S",
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
    ("fold/quota.py", "REQUESTS_PER_S = 20", "REQUESTS_PER_S = 21"): (
        "a round figure; the tests compute times and rates with this constant"
    ),
    ("fold/resending.py", "MARGIN_S = 600.0", "MARGIN_S = 601.0"): (
        "a round figure of several minutes; the tests call quiet_s, which adds it"
    ),
    ("fold/resending.py", "DAY_S = 86400.0", "DAY_S = 86401.0"): (
        "a second more between two repetitions harms nothing; the test compares with this constant"
    ),
    ("head/life.py", "MESSAGE_BYTES = 900", "MESSAGE_BYTES = 901"): (
        "a round figure; test_bounds.py makes the largest head with this constant"
    ),
    ("head/life.py", "SET_ASIDE = 4", "SET_ASIDE = 5"): "like MESSAGE_BYTES",
    ("head/life.py", "HOST_BYTES, LACKS_BYTES = 48, 160", "HOST_BYTES, LACKS_BYTES = 49, 160"): "like MESSAGE_BYTES",
    ("head/life.py", "HOST_BYTES, LACKS_BYTES = 48, 160", "HOST_BYTES, LACKS_BYTES = 48, 161"): "like MESSAGE_BYTES",
    ("head/package.py", "UNREADABLE = 1 << 62", "UNREADABLE = 2 << 62"): (
        "any version above those of all releases serves, because no head with it is stored"
    ),
    ("head/package.py", "UNREADABLE = 1 << 62", "UNREADABLE = 1 << 63"): "like 2 << 62",
    ("head/pace.py", "FLEET = 1_000", "FLEET = 1001"): "like MESSAGE_BYTES",
    ("head/quota.py", "GIVEN_BACK = 20", "GIVEN_BACK = 21"): "a round figure; the tests compare with this constant",
    ("head/tasks.py", "ENTRIES = 19_000", "ENTRIES = 19001"): "like MESSAGE_BYTES",
    ("pacing.py", "POLLS_PER_S = 8.0", "POLLS_PER_S = 9.0"): (
        "a choice between cost and delay; the tests compare with this constant"
    ),
    ("pacing.py", "WORKER_BOUNDS_S = (0.2, 30.0)", "WORKER_BOUNDS_S = (0.2, 31.0)"): "like POLLS_PER_S",
    ("pacing.py", "SHORTEST_COLLECTION_US = 200_000", "SHORTEST_COLLECTION_US = 200001"): "like POLLS_PER_S",
    ("pacing.py", "CALL_S = 5.0", "CALL_S = 6.0"): "like POLLS_PER_S",
    ("planning.py", "NESTED_PACKAGES = 8", "NESTED_PACKAGES = 9"): (
        "a choice; test_fairness.py compares with this constant"
    ),
    (
        "planning.py",
        "return max(1, min(smallest, int(longest_us / max(pace.mean_us, 1.0))))",
        "return max(1, min(smallest, int(longest_us / max(pace.mean_us, 2.0))))",
    ): "the crew is the same, unless a chunk should last less than two microseconds",
    (
        "planning.py",
        "def next_window(window: int, wait_us: int, places: int, policy: Policy, most_executors: int = 0) -> int:",
        "def next_window(window: int, wait_us: int, places: int, policy: Policy, most_executors: int = 1) -> int:",
    ): "up to LARGE_FLEET executors, the largest window is the same",
    ("quota.py", "FIRST_SLICE_US = 10_000_000", "FIRST_SLICE_US = 10000001"): (
        "a guess; the tests compare with this constant"
    ),
    ("shortage.py", "SHORT_S: Final = 480.0", "SHORT_S: Final = 481.0"): (
        "a choice between the boot time of a host and 600 s; the tests compare with this constant"
    ),
    ("shortage.py", "PAUSES_S: Final = 60.0, 3_600.0", "PAUSES_S: Final = 61.0, 3_600.0"): (
        "a choice; the tests compare with this constant"
    ),
    ("shortage.py", "PAUSES_S: Final = 60.0, 3_600.0", "PAUSES_S: Final = 60.0, 3601.0"): "like the first pause",
    (
        "shortage.py",
        "resumes_at = now + min(shortest_s * (1 << min(before.pauses, 10)), longest_s)",
        "resumes_at = now + min(shortest_s * (1 << min(before.pauses, 11)), longest_s)",
    ): "ten doubled pauses are longer than the longest pause already",
    ("turns.py", "ALLOWANCE_US = 1_000_000", "ALLOWANCE_US = 1000001"): (
        "a round figure; the tests compute costs with this constant"
    ),
    ("virtual_time.py", "REMEMBERED = 1_000", "REMEMBERED = 1001"): (
        "a round figure; the tests replace it by a small one"
    ),
}
"""The reason for each file, line, and changed line."""
