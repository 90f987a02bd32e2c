"""The arguments of `Pool` as one record, which the parts of the pool share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from cloudpar_protocol.brief import brief
from cloudpar_protocol.limits import EXECUTORS, THREADS

from .argument_types import flag_or_none, patience, time_limit, whole_or_none
from .retry import Retry

Output = Literal["print"] | Callable[[int, str, str], None] | None
"""What to do with the text that tasks print: print it, call a function of (index, stdout, stderr), or drop it."""


@dataclass(frozen=True)
class PoolOptions:
    """The arguments of a pool; see `Pool`. `workers` must come from `executor_count`, and `retry` from `read_retry`.

    Raises:
        TypeError: An argument other than these two has a wrong type.
        ValueError: An argument other than these two is out of its range.
    """

    workers: int | None
    memory_mb: int | None
    threads_per_task: int | None
    patience_s: float
    task_timeout_s: float | None
    retry: Retry
    output: Output
    progress: bool | None
    initializer: Callable[..., object] | None = None
    initargs: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        vars(self).update(
            patience_s=patience("patience_s", self.patience_s),
            task_timeout_s=time_limit("task_timeout_s", self.task_timeout_s),
            output=_checked_output(self.output),
            progress=flag_or_none("progress", self.progress),
            memory_mb=whole_or_none("memory_mb", self.memory_mb),
            threads_per_task=whole_or_none("threads_per_task", self.threads_per_task),
            initargs=_checked_initargs(self.initializer, self.initargs),
        )
        if self.memory_mb is not None and self.memory_mb < 1:
            raise ValueError(f"memory_mb={self.memory_mb}: give a positive number of MB, or None")
        if self.threads_per_task is not None and not 1 <= self.threads_per_task <= THREADS:
            raise ValueError(f"threads_per_task={self.threads_per_task}: give a number from 1 to {THREADS:,}, or None")

    @property
    def are_local(self) -> bool:
        """Whether these options contain one that applies only to a pool's own worker."""
        return self.workers is not None or self.memory_mb is not None

    def refuse_local_ones(self) -> None:
        """Refuse the options that apply only to a pool's own worker. The master at the endpoint has other workers.

        Raises:
            ValueError: `workers` or `memory_mb` is given.
        """
        if self.workers is not None:
            raise ValueError("workers= is for a pool on this machine: the master at endpoint= has workers of its own")
        if self.memory_mb is not None:
            raise ValueError(
                "memory_mb= is for a pool on this machine: where the workers of the master at endpoint= start, "
                "`cloudpar up` and `cloudpar worker` take --memory-mb"
            )


def executor_count(workers: int | None, max_workers: int | None) -> int | None:
    """Return the number of executors from either argument; None if neither is given.

    Raises:
        TypeError: A value is not a whole number.
        ValueError: Both names are used, or the number is below 1 or above EXECUTORS.
    """
    workers, max_workers = whole_or_none("workers", workers), whole_or_none("max_workers", max_workers)
    if workers is not None and max_workers is not None:
        raise ValueError("workers= and max_workers= are two names for one thing: give one of them")
    count = workers if max_workers is None else max_workers
    if count is not None and count < 1:
        name = "workers" if max_workers is None else "max_workers"
        raise ValueError(f"{name} must be greater than 0: a pool needs at least one executor")
    if count is not None and count > EXECUTORS:
        raise ValueError(f"{count:,} executors are too many for this machine's worker: it has at most {EXECUTORS:,}")
    return count


def _checked_output(output: Output) -> Output:
    """Check the argument `output=`.

    Raises:
        TypeError: The argument is neither "print", None nor a function.
    """
    given: object = output
    if given is not None and not callable(given) and not (isinstance(given, str) and given == "print"):
        raise TypeError(f'output={brief(given)}: give "print", None, or a function of (index, stdout, stderr)')
    return output


def _checked_initargs(initializer: object, initargs: Any) -> tuple[Any, ...]:
    """Return the initializer's arguments as a tuple.

    Raises:
        TypeError: The initializer is not callable, or its arguments are not iterable.
        ValueError: There are arguments, but there is no initializer.
    """
    if initializer is not None and not callable(initializer):
        raise TypeError(f"initializer={brief(initializer)}: initializer must be a callable, or None")
    try:
        arguments = tuple(initargs)
    except TypeError:
        raise TypeError(f"initargs={brief(initargs)}: give a tuple, such as initargs=(value,)") from None
    if arguments and initializer is None:
        raise ValueError("initargs= are the arguments of initializer=: give both")
    return arguments
