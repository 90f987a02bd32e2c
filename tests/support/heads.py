"""Makes and changes heads for tests, by the names of their fields."""

from typing import Any

from cloudpar_master.core.head import Head, Life, Pace, Quota, Tasks


def make_head(package_id: str, account_id: str, tasks: int, started_at: float, **fields: Any) -> Head:
    """Make a head with these values of fields of any group."""
    head = Head(
        package_id=package_id, account_id=account_id, started_at=started_at, now=started_at,
        tasks=Tasks(count=tasks), quota=Quota(), pace=Pace(window=8), life=Life(),
    )  # fmt: skip
    return altered(head, **fields)


def altered(head: Head, **fields: Any) -> Head:
    """Copy a head, with these fields of any group changed."""
    after = head.draft()
    for name, value in fields.items():
        groups = [each for each in (after.tasks, after.quota, after.pace, after.life) if name in each.__struct_fields__]
        setattr(groups[0] if groups else after, name, value)
    return after
