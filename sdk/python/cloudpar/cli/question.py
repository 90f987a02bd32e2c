"""What deploy and destroy ask before they change anything."""

import sys

import click


def ask(question: str, *, yes: bool) -> None:
    """Go on if the answer is yes, or was given by --yes. It may come by a pipe.

    Raises:
        Abort: It is no.
        UsageError: Nobody is there to answer.
    """
    if yes:
        return
    nobody = click.UsageError(f"without a terminal nobody answers {question!r}: add --yes, and nothing is asked")
    if sys.stdin is None:
        raise nobody
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort as stop:
        # click makes the same of Ctrl-C, of Ctrl-D at a terminal, and of input that has ended.
        if isinstance(stop.__context__, EOFError) and not sys.stdin.isatty():
            click.echo(err=True)  # the question's line has not ended
            raise nobody from None
        raise
