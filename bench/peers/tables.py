"""The tables: one for each group of rows, with one line for each engine."""

from collections.abc import Iterator
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .outcomes import Outcome, Outcomes
from .rows import Figure, Row

Column = tuple[Row, Figure]


def tables(outcomes: Outcomes, rows: list[Row], engines: list[str]) -> RenderableType:
    """Return a table for each group, and below it why engines have no figures. The best figures are bold."""
    parts: list[RenderableType] = []
    for group, of_group in groupby(rows, lambda row: row.group):
        members = list(of_group)
        parts.append(_table(group, [(row, figure) for row in members for figure in row.figures], outcomes, engines))
        parts += [Text(note, style="dim") for note in _notes(members, outcomes)]
        parts.append(Text())
    return Group(*parts)


def _table(group: str, columns: list[Column], outcomes: Outcomes, engines: list[str]) -> Table:
    table = Table("", title=group, title_justify="left")
    for _, figure in columns:
        table.add_column(figure.heading, justify="right")
    bests = [_best(outcomes[row.name], figure) for row, figure in columns]
    for engine in engines:
        cells = [
            _cell(outcomes[row.name][engine], figure, best) for (row, figure), best in zip(columns, bests, strict=True)
        ]
        table.add_row(engine, *cells)
    return table


def _best(of_row: dict[str, Outcome], figure: Figure) -> float | None:
    medians = [value for each in of_row.values() if (value := each.median(figure)) is not None]
    return (max if figure.more_is_better else min)(medians) if medians else None


def _cell(outcome: Outcome, figure: Figure, best: float | None) -> Text:
    value = outcome.median(figure)
    if value is None:
        return Text("-" if outcome.left_out else "failed", style="dim" if outcome.left_out else "bold red")
    return Text(amount(value), style="bold" if value == best else "")


def amount(value: float) -> str:
    """Format a number with three significant digits, and without an exponent."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:#.3g}"


def _notes(rows: list[Row], outcomes: Outcomes) -> Iterator[str]:
    """Yield each note once, with all engines and rows that it is true of."""
    of_engine: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for engine, outcome in outcomes[row.name].items():
            if outcome.note:
                of_engine.setdefault((engine, outcome.note), []).append(row.name)
    together: dict[tuple[str, str], list[str]] = {}
    for (engine, note), names in of_engine.items():
        together.setdefault((note, ", ".join(names)), []).append(engine)
    for (note, where), engines in together.items():
        yield f"{', '.join(engines)} in {where}: {note}"
