"""The pictures of the documentation need no other file, and the recorded session is what its script makes."""

import re
import runpy
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from docs.pages import PAGES, ROOT

PICTURES = sorted((ROOT / "docs/pictures").iterdir())
DRAWINGS = [path for path in PICTURES if path.suffix == ".svg"]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs/recording.py"))


def test_every_picture_is_on_a_page_with_a_text_for_those_who_do_not_see_it() -> None:
    texts = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for picture in PICTURES:
        (text,) = set(re.findall(rf"!\[([^\]]+)\]\([^)]*pictures/{re.escape(picture.name)}\)", texts))
        assert len(text) > 20, picture.name


@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda path: path.name)
def test_a_drawing_needs_no_network_and_has_a_name(drawing: Any) -> None:
    text = drawing.read_text(encoding="utf-8")
    root = ET.fromstring(text)  # noqa: S314 - a file of this repository
    assert set(re.findall(r"https?://[^\"')\s]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
        *re.findall(r"xmlns:\w+=\"([^\"]+)\"", text),
    }
    assert root.get("aria-label") or root.get("aria-labelledby") or root.find("{*}metadata") is not None
    assert "<script" not in text


def test_the_recorded_session_shows_todays_program(script: dict[str, Any]) -> None:
    root = ET.parse(ROOT / "docs/pictures/session.svg").getroot()  # noqa: S314 - a file of this repository
    lines = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    for line in filter(None, script["PROGRAM"].splitlines()):
        assert line in lines, "python docs/recording.py > docs/pictures/session.svg"


def test_a_line_that_is_written_again_is_shown_in_turn(script: dict[str, Any]) -> None:
    screen, states = script["Screen"](), []
    for at_s, text in ((0.0, "one\n"), (1.0, "\x1b[31mhalf\x1b[0m"), (2.0, "\r\x1b[2Kwhole\n"), (3.0, "end")):
        screen.write(text)
        states.append(script["State"](at_s, tuple(screen.lines)))
    assert screen.lines == ["one", "whole", "end"]
    shown = [tuple(each) for each in script["shown"](states, 9.0)]
    assert sorted(shown) == [
        (0, "one", 0.0, 9.0),
        (1, "\x1b[31mhalf\x1b[0m", 1.0, 2.0),
        (1, "whole", 2.0, 9.0),
        (2, "end", 3.0, 9.0),
    ]
    assert "fill" in script["render"](states)
