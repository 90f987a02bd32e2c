"""Explore scenarios, and print the progress: PYTHONPATH=tests .venv/bin/python -m interleavings --only readers."""

import sys

import click

from support.checks import Broken

from .exploration import explore
from .scenarios import SCENARIOS


@click.command()
@click.option("--only", default="", help="Explore the scenarios whose names contain this.")
@click.option("--deviations", type=int, help="How many switches and crashes a schedule has at most.")
def main(only: str, deviations: int | None) -> None:
    """Print what each scenario explored. The exit code is 1 if one breaks."""
    broken = states = 0
    for scenario in SCENARIOS:
        if only not in scenario.name:
            continue
        most = scenario.deviations if deviations is None else deviations
        click.echo(f"{scenario.name}, with {most} deviations: ", nl=False)
        try:
            found = explore(scenario, most, lambda count: click.echo(f"{count:,} ... ", nl=False))
        except Broken as error:
            broken += 1
            click.echo("\n".join(["", str(error), *error.__notes__]))
        else:
            states += found.states
            click.echo(f"{found.states:,} states, {found.steps:,} steps, {found.ends:,} ends")
    click.echo(f"{states:,} states in all, {broken} scenarios broken")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
