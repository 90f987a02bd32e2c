"""The tests that a stand-in does not run are listed by name; a renamed test would run there without its entry."""

import re
from pathlib import Path

from aws import differences

TESTS = Path(__file__).parents[1]


def test_each_name_in_the_list_of_differences_is_a_test() -> None:
    lists = (differences.AWS, differences.MOTO, differences.ELASTICMQ, differences.VERSITYGW, differences.MINISTACK)
    named = {name for each in lists for name in each}
    texts = (
        path.read_text() for folder in ("master/conformance", "aws") for path in (TESTS / folder).rglob("test_*.py")
    )
    tests = {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
    assert not named - tests
