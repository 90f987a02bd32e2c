"""What the measurements found."""

from dataclasses import asdict, dataclass, field
from statistics import median

from .engines import Peer
from .processes import LINUX
from .rows import Figure, Row


@dataclass
class Outcome:
    """What one engine did in one row.

    Attributes:
        samples: For each figure its values, one of each round.
        left_out: Why it was not run, or an empty text.
        error: Why it failed, or an empty text. `samples` keeps those of earlier rounds.
    """

    samples: dict[str, list[float]] = field(default_factory=dict)
    left_out: str = ""
    error: str = ""

    def add(self, figures: dict[str, float]) -> None:
        """Add the figures of one round."""
        for name, value in figures.items():
            self.samples.setdefault(name, []).append(value)

    def median(self, figure: Figure) -> float | None:
        """Return a figure's median, or None if the engine has failed or was not run."""
        return None if self.error or figure.name not in self.samples else median(self.samples[figure.name])

    @property
    def note(self) -> str:
        """Why there are no figures, or an empty text."""
        return f"left out, because {self.left_out}" if self.left_out else self.error


def left_out(peer: Peer, row: Row) -> str:
    """Return why an engine is not run in a row, or an empty text."""
    if row.needs_linux and not LINUX:
        return "only Linux says how much memory is shared"
    if peer.name in row.left_out:
        return row.left_out[peer.name]
    return f"{peer.why} (it gets up to {peer.most_tasks:,})" if row.load.tasks > peer.most_tasks else ""


Outcomes = dict[str, dict[str, Outcome]]
"""For each row and each engine, by their names."""


def as_object(outcomes: Outcomes, rows: list[Row]) -> dict[str, object]:
    """Return all rows with medians, samples and notes, for JSON."""
    return {
        row.name: {
            "what": row.what,
            "load": asdict(row.load),
            "engines": {engine: _one(outcome, row) for engine, outcome in outcomes[row.name].items()},
        }
        for row in rows
    }


def _one(outcome: Outcome, row: Row) -> dict[str, object]:
    figures = {
        figure.name: {
            "unit": figure.unit, "median": outcome.median(figure), "samples": outcome.samples.get(figure.name, []),
        }
        for figure in row.figures
    }  # fmt: skip
    return {"figures": figures, "left_out": outcome.left_out or None, "error": outcome.error or None}
