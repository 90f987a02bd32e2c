"""Turns texts of other people into single lines that are safe to print in a terminal or to write to a log."""


def one_line(text: str, most_chars: int) -> str:
    r"""Return a text as one line of at most `most_chars` characters. A text that is cut ends with "...".

    Line feeds and other white space become single spaces. Every other character that cannot be printed becomes a
    question mark: control characters could change the terminal, and a line feed could forge a line of a log.

    >>> one_line("no module\n named \x1b[31m", 100), one_line("too long", 6)
    ('no module named ?[31m', 'too...')
    """
    line = " ".join(text.split())
    if len(line) > most_chars:
        line = f"{line[: most_chars - 3]}..."
    return "".join(character if character.isprintable() else "?" for character in line)
