"""A dictionary that forgets what was set the longest time ago."""

from cloudpar_master.core.recent import Recent


def test_the_entry_that_was_set_the_longest_time_ago_is_forgotten() -> None:
    recent = Recent[str, int](most=2)
    for number, name in enumerate("abac"):
        recent[name] = number
    assert list(recent.items()) == [("a", 2), ("c", 3)]


def test_as_many_entries_as_permitted_are_kept() -> None:
    recent = Recent[str, int](most=2)
    recent["a"], recent["b"] = 1, 2
    assert dict(recent) == {"a": 1, "b": 2}
