"""Run one seed again, and print all that happens: PYTHONPATH=tests .venv/bin/python -m simulation --seed 17."""

import sys

import click

from .system import System, story


@click.command()
@click.option("--seed", type=int, required=True, help="The run.")
def main(seed: int) -> None:
    """Print a run's trace. The exit code is 1 if a check fails."""
    system = System(seed)
    try:
        system.run()
    except Exception as error:
        click.echo(story(system.books))
        click.echo(f"{type(error).__name__}: {error}")
        if not isinstance(error, AssertionError):
            raise
        sys.exit(1)
    click.echo(story(system.books))


if __name__ == "__main__":
    main()
