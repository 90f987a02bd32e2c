"""Stored heads are decoded once, and never confused."""

import pytest

from cloudpar_master.adapters.records import DECODED, HeadRow, Records
from cloudpar_master.core.head import Head, stored
from master.core.folds import new


def row(head: Head) -> HeadRow:
    return HeadRow(head.package_id, head.account_id, head.started_at, head.version, stored.encode(head))


def named(package_id: str, version: int = 0) -> Head:
    head = new()
    head.package_id, head.version = package_id, version
    return head


def test_a_head_that_is_read_again_is_not_decoded_again() -> None:
    records, head = Records(), named("p")
    first = records.head(row(head))
    assert first == head
    assert records.head(row(head)) is first


def test_a_head_that_this_process_has_stored_is_not_decoded() -> None:
    records, head = Records(), named("p")
    records.remember(stored.encode(head), head)
    assert records.head(row(head)) is head


def test_a_head_that_another_process_has_stored_is_decoded() -> None:
    records = Records()
    records.head(row(named("p", 1)))
    assert records.head(row(named("p", 2))).version == 2


def test_a_head_that_was_damaged_since_it_was_read_is_noticed() -> None:
    records, head = Records(), named("p")
    records.head(row(head))
    body = bytearray(stored.encode(head))
    body[20] ^= 1
    assert records.head(row(head)._replace(head=bytes(body))).damaged


@pytest.mark.parametrize("others", [DECODED - 1, DECODED])
def test_a_store_remembers_the_heads_of_a_bounded_number_of_packages(others: int) -> None:
    records, head = Records(), named("p")
    first = records.head(row(head))
    for number in range(others):
        records.head(row(named(f"other {number}")))
    assert (records.head(row(head)) is first) == (others < DECODED)
