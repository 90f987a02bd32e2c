"""The question that deploy and destroy ask before they change anything."""

import sys

import click


def ask(question: str, *, yes: bool) -> None:
    """Return if the user answers yes or gave --yes. The answer may come from a pipe.

    Raises:
        Abort: The answer is no, or the user pressed Ctrl-C or, at a terminal, Ctrl-D.
        UsageError: There is no standard input, or it has ended, so no answer can come.
    """
    if yes:
        return
    no_answer = click.UsageError(f"there is no terminal to answer {question!r}: add --yes, and nothing is asked")
    if sys.stdin is None:
        raise no_answer
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort as stop:
        # click raises the same for Ctrl-C, for Ctrl-D at a terminal, and for input that has ended.
        if isinstance(stop.__context__, EOFError) and not sys.stdin.isatty():
            click.echo(err=True)  # end the line of the question
            raise no_answer from None
        raise
