"""No text of this project uses a word that hides who does something, or a name that another one has replaced."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from docs.pages import ROOT

_ACTOR: Final = "name the actor: the client, the losing worker, the operator, no process"
WORDS: Final = {
    "nobody": _ACTOR,
    "somebody": _ACTOR,
    "anybody": _ACTOR,
    "everybody": _ACTOR,
    "whoever": _ACTOR,
    "heeded": "read, used; of an argument without effect: ignored",
    "in vain": "without effect, or what happens instead",
    "for ever": "without end, until the process ends, never",
    "anew": "again, or from the start",
    "shall": "the present tense: what the code does, or must",
    "so often": "how often, or the number",
    "(?:un)?mend(?:s|ed|ing)?": "fix, repair; in an error text: what to do",
    "(?:come|comes|came|coming) home": "is copied back to the client",
    "told": "reported; of two things: distinguished",
    "ask(?:s|ed|ing)? for": "request, require; of a person: prompt for",
    "courier": "master_io",
    "debtor": "billing_id",
    "greetings?": "the configuration, the first line",
    "leavings": "cleanup",
    "nameless": "anonymous, without a name",
    "reception": "dispatcher",
    "troubles?": "a fault, a failure, a problem",
    "weighing": "memory_meter",
}
"""What a text must not say, as a pattern in lower case, and what it says instead. The last ones are old names."""

PROSE: Final = {"[Bb]egin(?:s|ning)?": "start"}
"""What a sentence must not say. A name or a command may contain it: SQL, DynamoDB and httptools have such ones."""

LEFT_OUT: Final = {"node_modules", "build", "__pycache__", "vectors", Path(__file__).name}
"""Installed and built files, the bytes of releases, and the table above."""

SUFFIXES: Final = {".py", ".pyi", ".ts", ".cts", ".mjs", ".md", ".sh", ".toml", ".in", ".yaml", ".service"}
WITHOUT_SUFFIX: Final = {"Makefile", "Dockerfile", "run"}

PLACES: Final = sorted(
    path.name
    for path in ROOT.iterdir()
    if path.name not in LEFT_OUT and (path.name == ".ci" or not path.name.startswith("."))
)
"""What is searched: all folders and files of the project."""

_WORD: Final = {word: re.compile(rf"(?<![a-z])(?:{word.replace(' ', '[ _]')})(?![a-z])") for word in WORDS}
_PROSE: Final = {word: re.compile(rf"(?<![\w.#]){word}(?![\w(])") for word in PROSE}


def files(place: Path) -> Iterator[Path]:
    """All texts of a folder, or the file itself."""
    if place.is_file() and (place.suffix in SUFFIXES or place.name in WITHOUT_SUFFIX):
        yield place
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(set(folders) - LEFT_OUT)
        for name in sorted(set(names) - LEFT_OUT):
            yield from files(Path(folder, name))


def plain(text: str) -> str:
    """A text in lower case, with the words of camelCase apart and the lines of a comment joined."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower()
    return re.sub(r"(?<=\w)\s*\n[\s#*/]*(?=\w)", " ", apart)


def written(path: Path) -> str:
    """What is searched of a file. What a release says of itself stays as it was published."""
    text = path.read_text(encoding="utf-8")
    return text.partition("\n## [Unreleased]\n")[2].partition("\n## [")[0] if path.name == "CHANGELOG.md" else text


def found(text: str) -> list[str]:
    """Each banned word of a text with its surroundings, and what to write instead."""
    return [
        f"...{searched[max(0, hit.start() - 40) : hit.end() + 30]!r}: instead of {hit[0]!r} write: {better}"
        for searched, table, patterns in ((plain(text), WORDS, _WORD), (text, PROSE, _PROSE))
        for word, better in table.items()
        for hit in patterns[word].finditer(searched)
    ]


@pytest.mark.parametrize("place", PLACES)
def test_texts_use_no_banned_word(place: str) -> None:
    hits = [f"{path.relative_to(ROOT)}: {hit}" for path in files(ROOT / place) for hit in found(written(path))]
    assert not hits, "\n" + "\n".join(hits)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Nobody reads it.", "nobody"),
        ("def test_what_nobody_reads() -> None: ...", "nobody"),
        ("waitsForNobody()", "nobody"),
        ("it waits for\n    # ever", "for ever"),
        ("it comes\nhome", "comes home"),
        ("SEAL_MEND = 1", "mend"),
        ("The client is told.", "told"),
        ("It asks\n    # for more.", "asks for"),
        ("TROUBLES = {}", "troubles"),
        ("Its name begins with a dot.", "begins"),
        ("# Begin here.", "Begin"),
    ],
)
def test_a_banned_word_is_found_in_prose_and_in_names(text: str, word: str) -> None:
    assert [hit for hit in found(text) if f"instead of {word!r}" in hit]


@pytest.mark.parametrize("text", [
    "We recommend it.", "It amends the table.", "a home folder", "what was renewed", "ask the operator for more",
    'execute("BEGIN IMMEDIATE")', "begins_with(sk, :page)", "def on_message_begin(self)", "downloads.begin(handle)",
])  # fmt: skip
def test_a_word_that_only_contains_a_banned_one_is_allowed(text: str) -> None:
    assert not found(text)
