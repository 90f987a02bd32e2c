"""Runs the command line as `python -m cloudpar`, for example where the script `cloudpar` is not on the PATH."""

from .cli import main

main()
