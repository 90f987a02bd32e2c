"""Options that limit the executors of a worker."""

import click

from cloudpar_protocol.limits import THREADS

memory_option = click.option(
    "--memory-mb", type=click.IntRange(min=1), default=None,
    help="The limit of one executor, in MB.  [default: 90 % of the memory, divided by the executors]",
)  # fmt: skip
threads_option = click.option(
    "--threads-per-task", type=click.IntRange(1, THREADS), default=None,
    help="Threads that numeric libraries may start in a task, unless its pool says a number.  [default: the variables "
    "such as OMP_NUM_THREADS, or 1]",
)  # fmt: skip
