"""Texts of other people are shown as one line that changes no terminal."""

import pytest

from cloudpar_protocol.one_line import one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no module named 'numpy'", "no module named 'numpy'"),
        ("first\n\n  second\tthird\x85fourth\u2028end\n", "first second third fourth end"),
        ("\x1b]0;title\x07 \x9b2J \x00", "?]0;title? ?2J ?"),
        ("right \u202e to left, \udcff alone", "right ? to left, ? alone"),
        ("Größe 大小", "Größe 大小"),
        ("", ""),
    ],
)
def test_text_becomes_one_printable_line(text: str, shown: str) -> None:
    assert one_line(text, 100) == shown


@pytest.mark.parametrize(
    ("text", "shown"), [("x" * 10, "x" * 10), ("x" * 11, "x" * 7 + "..."), ("\x1b" * 11, "?" * 7 + "...")]
)
def test_text_is_cut_at_its_limit(text: str, shown: str) -> None:
    assert one_line(text, 10) == shown
