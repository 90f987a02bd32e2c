"""Record a session in a terminal, and write it as an animated picture.

    python docs/recording.py > docs/pictures/session.svg

The session is real: the commands run in a pseudo-terminal, in a folder of their own. The picture needs no script and no
network. A reader whose browser reduces motion sees its end.
"""

import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

from rich.color_triplet import ColorTriplet
from rich.terminal_theme import MONOKAI as THEME
from rich.text import Text

COLUMNS, ROWS = 92, 22
CELL, LINE, MARGIN = 8.43, 20, 16
"""Pixels of a character, of a line, and around the text. DejaVu Sans Mono at 14 pixels is this wide."""
LONGEST_PAUSE_S, END_S = 1.5, 4.0
"""How long a pause of the session may be in the picture, and how long its last state stays."""
STEP_S = 0.15
"""The picture shows at most one change within this time."""
PROMPT = "\x1b[32m$\x1b[0m "

PROGRAM = """\
import random

from cloudpar import Pool

def inside(seed):
    generator = random.Random(seed)
    return sum(generator.random() ** 2 + generator.random() ** 2 < 1 for _ in range(60_000))

with Pool(progress=True) as pool:
    hits = sum(pool.map(inside, range(400)))
print("pi is about", round(4 * hits / (400 * 60_000), 3))
"""
COMMANDS = ["cat pi.py", "python pi.py"]

_CONTROL = re.compile(r"\x1b\[(?P<figures>[0-9;?]*)(?P<letter>[A-Za-z])|(?P<move>[\r\n])")


class State(NamedTuple):
    """What the terminal shows from a moment on, in seconds from the start of the recording."""

    at_s: float
    lines: tuple[str, ...]


class Shown(NamedTuple):
    """One line of text, where and how long it is shown."""

    row: int
    text: str
    start_s: float
    end_s: float


class Screen:
    """As much of a terminal as the recorded commands use: lines that are added, and lines that are written again."""

    def __init__(self) -> None:
        self.lines = [""]
        self._row = 0

    def write(self, text: str) -> None:
        """Take what a command writes. Colours stay in the lines."""
        end = 0
        for control in _CONTROL.finditer(text):
            self._put(text[end : control.start()])
            end = control.end()
            match control["letter"], control["move"]:
                case "m", _:
                    self._put(control[0])
                case "A", _:
                    self._row = max(0, self._row - int(control["figures"] or 1))
                case "K", _:
                    self.lines[self._row] = ""
                case _, "\n":
                    self._row += 1
                    self.lines += [""] * (self._row - len(self.lines) + 1)
        self._put(text[end:])

    def _put(self, text: str) -> None:
        self.lines[self._row] += text


def record(folder: Path) -> Iterator[State]:
    """Run the commands one after the other."""
    (folder / "pi.py").write_text(PROGRAM, encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    variables = {name: value for name, value in os.environ.items() if not name.startswith("CLOUDPAR_")}
    variables |= {"PATH": path, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
    screen, clock_s, last_s = Screen(), 0.0, time.monotonic()
    for command in COMMANDS:
        screen.write(f"{PROMPT}{command}\n")
        yield State(clock_s, tuple(screen.lines))
        clock_s += 1.0
        mine, its = pty.openpty()
        process = subprocess.Popen(command.split(), cwd=folder, env=variables, stdout=its, stderr=its)
        os.close(its)
        last_s = time.monotonic()
        while more := _read(mine):
            now_s = time.monotonic()
            clock_s += min(now_s - last_s, LONGEST_PAUSE_S)
            last_s = now_s
            screen.write(more)
            yield State(clock_s, tuple(screen.lines))
        os.close(mine)
        if process.wait() != 0:
            sys.exit(f"{command}: exit code {process.returncode}: {screen.lines}")
        clock_s += 1.0
    screen.write(PROMPT)
    yield State(clock_s, tuple(screen.lines))


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 65_536).decode()
    except OSError:  # the terminal's end: no process writes to it any more
        return ""


def shown(states: list[State], end_s: float) -> list[Shown]:
    """Each line with the time during which it is on the screen; states in quick succession become one."""
    # The last state of each step, so that what is on the screen for long is whole.
    kept = list({int(state.at_s / STEP_S): state for state in states}.values())
    found, current = [], dict[int, Shown]()
    for state in kept:
        for row, text in enumerate(state.lines):
            before = current.get(row)
            if before is None or before.text != text:
                if before is not None:
                    found.append(before._replace(end_s=state.at_s))
                current[row] = Shown(row, text, state.at_s, end_s)
    return [each for each in [*found, *current.values()] if Text.from_ansi(each.text).plain.strip()]


def render(states: list[State]) -> str:
    """The picture."""
    end_s = states[-1].at_s + END_S
    lines = shown(states, end_s)
    height = 2 * MARGIN + LINE * (max(each.row for each in lines) + 1)
    width = round(2 * MARGIN + CELL * COLUMNS)
    rules = "\n".join(_rule(number, each, end_s) for number, each in enumerate(lines))
    texts = "\n".join(_text(number, each) for number, each in enumerate(lines))
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="A recorded session">
<style>
text {{ font: 14px 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: {_hex(THEME.foreground_color)} }}
{rules}
@media (prefers-reduced-motion: reduce) {{ text {{ animation: none !important }} }}
</style>
<rect width="{width}" height="{height}" rx="10" fill="{_hex(THEME.background_color)}"/>
{texts}
</svg>
"""


def _rule(number: int, line: Shown, end_s: float) -> str:
    """Hide a line outside its time. Without animation only the lines of the end are visible."""
    start, end = (round(100 * at_s / end_s, 2) for at_s in (line.start_s, line.end_s))
    hidden, frames = "visibility: hidden", f"{start}% {{ visibility: visible }}"
    if start > 0:
        frames = f"0% {{ {hidden} }} {frames}"
    frames += f" {end}% {{ {hidden} }}" if end < 100 else ""
    still = "" if line.end_s == end_s else f" {hidden};"
    animation = f"animation: k{number} {end_s:.1f}s step-end infinite"
    return f"@keyframes k{number} {{ {frames} }} .t{number} {{{still} {animation} }}"


def _text(number: int, line: Shown) -> str:
    text = Text.from_ansi(line.text)
    parts = []
    for part in text.divide(sorted({edge for span in text.spans for edge in (span.start, span.end)})):
        color = next((style.color for style in (span.style for span in part.spans) if not isinstance(style, str)), None)
        fill = f' fill="{_hex(color.get_truecolor(THEME))}"' if color is not None else ""
        parts.append(f"<tspan{fill}>{escape(part.plain)}</tspan>")
    top = MARGIN + LINE * line.row + 15
    return f'<text class="t{number}" xml:space="preserve" x="{MARGIN}" y="{top}">{"".join(parts)}</text>'


def _hex(color: ColorTriplet) -> str:
    return f"#{color.red:02x}{color.green:02x}{color.blue:02x}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(render(list(record(Path(folder)))))
