"""`python -m cloudpar`: the command line, where its script is not on the PATH."""

from cloudpar.cli import main

main()
