import pytest

from support.scale import Reached, in_words, record


def test_what_several_tests_counted_is_added_up() -> None:
    seen = [
        Reached("test[0]", "{runs:,} runs", {"runs": 700}),
        Reached("test[1]", "{runs:,} runs", {"runs": 800}),
        Reached("another", "no run of {1, 2}"),
        Reached("another again", "no run of {1, 2}"),
    ]
    assert in_words(seen) == ["1,500 runs", "no run of {1, 2}"]


def test_words_that_lack_a_count_fail_in_the_quick_form_too() -> None:
    with pytest.raises(KeyError, match="steps"):
        record("test", "{runs} runs of {steps} steps", runs=1)
