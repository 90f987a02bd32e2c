import pytest

from support.scale import Reached, in_words, missed, record


def test_what_several_tests_counted_is_added_up() -> None:
    seen = [
        Reached("test[0]", "{runs:,} runs", {"runs": 700}),
        Reached("test[1]", "{runs:,} runs", {"runs": 800}),
        Reached("another", "no run of {1, 2}"),
        Reached("another again", "no run of {1, 2}"),
    ]
    assert in_words(seen) == ["1,500 runs", "no run of {1, 2}"]


def test_counts_of_all_tests_together_are_compared_with_the_promised_figure() -> None:
    first = Reached("test[0]", "{states} states", {"states": 700}, least={"states": 1_500})
    assert missed([first, Reached("test[1]", "{states} states", {"states": 800})]) == []
    assert missed([first, Reached("test[1]", "{states} states", {"states": 799})]) == [
        "1,499 states are less than 1,500"
    ]


def test_a_promised_count_that_no_test_counts_fails_in_the_quick_form_too() -> None:
    with pytest.raises(AssertionError):
        record("test", "{runs} runs", least={"stats": 1}, runs=1)


def test_words_that_lack_a_count_fail_in_the_quick_form_too() -> None:
    with pytest.raises(KeyError, match="steps"):
        record("test", "{runs} runs of {steps} steps", runs=1)
