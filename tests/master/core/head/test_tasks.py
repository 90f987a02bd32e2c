"""Ranges that an earlier release has stored have fewer fields."""

import msgspec

from cloudpar_master.core.head.tasks import OpenRange


def test_the_range_of_an_earlier_release_is_not_sent_not_lost_and_not_express() -> None:
    earlier = msgspec.convert([0, 4, 1], OpenRange)
    assert earlier == OpenRange(0, 4, 1, sent=False, losses=0, express=False)
