from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudpar.cli import spans


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("10m", 600_000_000),
        ("2h", 7_200_000_000),
        ("3d", 259_200_000_000),
        ("100h", 360_000_000_000),
        ("250ms", 250_000),
        ("0.1s", 100_000),
        ("0s", 0),
        ("-10h", -36_000_000_000),
        (" 5s ", 5_000_000),
    ],
)
def test_a_span_is_parsed_into_microseconds(text: str, microseconds: int) -> None:
    assert spans.parse(text) == microseconds


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "5w", "1h-3m", "--5s", "1e3s", "5S", "∞h", "1.h", "h5"])
def test_an_invalid_span_names_the_form(text: str) -> None:
    with pytest.raises(ValueError, match="write it as 90s"):
        spans.parse(text)


@given(text=st.text())
def test_any_text_is_a_span_or_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert isinstance(spans.parse(text), int)


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (1, "0.001ms"),
        (999, "0.999ms"),
        (1_500_000, "1.5s"),
        (59_000_000, "59s"),
        (60_000_000, "1m"),
        (3_600_000_000, "1h"),
        (3_661_000_000, "1h 1m"),
        (90_000_000_000, "1d 1h"),
        (86_400_000_000, "1d"),
        (-3_600_000_000, "-1h"),
    ],
)
def test_microseconds_are_printed_as_a_span(microseconds: int, text: str) -> None:
    assert spans.show(microseconds) == text


@given(seconds=st.integers(0, 10**9))
def test_a_printed_span_can_be_typed_and_loses_only_the_smaller_units(seconds: int) -> None:
    shown = spans.parse(spans.show(seconds * 1_000_000).replace(" ", ""))
    assert shown <= seconds * 1_000_000
    assert seconds * 1_000_000 - shown <= seconds * 1_000_000 // 24
