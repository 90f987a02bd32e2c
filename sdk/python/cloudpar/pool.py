"""`Pool`: a `concurrent.futures.Executor` whose executors may be on other machines."""

import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

from ._arguments.argument_types import address, flag
from ._arguments.keywords import named
from ._arguments.pool_options import PoolOptions, executor_count
from ._arguments.retry import RetryOn, read_retry
from ._client.configuration import LOCAL, configure, of_the_task
from ._formatting.quantity import quantity
from ._formatting.tracebacks import ShortTracebacks
from ._pool.familiar_names import FamiliarNames
from ._pool.lifetime import Lifetime, first_contact
from ._pool.map_methods import MapMethods
from .errors import SerializationError

if TYPE_CHECKING:
    from ._arguments.pool_options import Output
    from .attachment import Attachment
    from .future import TaskFuture
    from .report import Report

P = ParamSpec("P")
T = TypeVar("T")

SUBMITTED_AHEAD = 1000
"""The number of submitted tasks that a library such as Dask keeps unfinished at a time. Dask submits the next task only
when fewer tasks are unfinished. Tasks that are submitted together travel in one request, and the master queues the
tasks that no executor can run yet. If this limit were the number of executors, Dask would wait for one request per
task.
"""

log = logging.getLogger("cloudpar")


class Pool(FamiliarNames, MapMethods):
    """Runs functions on the executors of a master; a complete `concurrent.futures.Executor`.

    The endpoint and the token come from the arguments, or, if an argument is not given, from the environment
    (CLOUDPAR_ENDPOINT, CLOUDPAR_TOKEN). If these two sources give neither an endpoint nor a token, both come from the
    profile file (~/.config/cloudpar/profile.toml, or the file that CLOUDPAR_PROFILE names). If there is no profile file
    either, or if the endpoint is "local", the pool starts its own master and worker on this machine, with temporary
    data. When the pool shuts down, it stops this master and this worker.

    Inside a task of a pool with its own master, `Pool()` connects to the same pool if `endpoint`, `token`, `workers`
    and `memory_mb` are not given. While the task waits for tasks that it has started, other tasks use its core.

    Functions, lambdas, closures and classes that a script or notebook defines are sent by value. Workers on other
    machines get the modules of your own project as files; workers on this machine import them from your folders.
    Installed modules must also be installed at the workers.

    Args:
        endpoint: The master's URL, such as "https://pool.example.com"; or "local".
        token: The account's token.
        workers: The number of executors of the pool's own worker, if the pool starts one; by default one for each core
            that this process may use.
        max_workers: Another name for `workers`, as in `concurrent.futures`.
        memory_mb: The memory limit of one executor of the pool's own worker, in MB, including all processes that a task
            starts. By default 90 % of the memory of the machine (or of the container), divided by `workers`.
        threads_per_task: The number of threads that NumPy's BLAS, OpenMP, Numexpr, Polars, PyTorch and other numeric
            libraries may start in one task. None means the worker's setting. The worker's setting is 1, unless its
            operator or a variable such as OMP_NUM_THREADS in its environment sets another number.
        patience_s: The longest time to wait for a master that has stopped answering, in seconds. After this time
            requests and unfinished packages fail. math.inf waits without a limit.
        task_timeout_s: The longest time that a task may run, in seconds. None means the operator's limit. If the
            operator's limit is shorter than `task_timeout_s`, the operator's limit applies.
        retries: How often to retry a task that raises. The executor retries the task immediately. If the last try
            fails, its exception is the result. `parallel_for` does not retry, since a body that failed may already have
            written something.
        retry_on: Retry only after these exceptions and their subclasses.
        output: What to do with the text that tasks print: "print" shows it with the task's index in front, a function
            gets (index, stdout, stderr), and None drops the text.
        progress: Whether to show the progress of maps. None shows it after 2 s, and only in a terminal or a notebook.
        initializer: A function that each executor calls before its first call of a function, for example to load a
            model into a global variable. If it raises, the task fails with this exception, and the executor's next task
            calls it again. `parallel_for` does not call it.
        initargs: The arguments of the initializer.

    Raises:
        TypeError: An argument has a wrong type. The text names the argument and the permitted types.
        ValueError: An argument is out of its range, or two arguments contradict each other.
        ConfigurationError: Only one of endpoint and token was found, or one of them is not valid. Or the profile file
            cannot be read, or has a wrong key or value. Or CLOUDPAR_PROFILE names a file that does not exist.
        MasterUnreachable: No master answers at the endpoint within 10 s. Or a master asked the client to wait, and then
            did not answer for longer than `patience_s`.
        InvalidToken: The master does not know the token.
        Forbidden: The token is the worker token or the admin token; a pool needs an account's token.
        CloudparError: The master refuses the first request for another reason.
        OSError: The pool cannot start its own master and worker, or cannot create their temporary folder.

    Example:
        >>> from cloudpar import Pool
        >>> with Pool(workers=2) as pool:
        ...     future = pool.submit(pow, 2, 10)
        ...     squares = list(pool.map(lambda x: x * x, range(5)))
        >>> future.result(), squares
        (1024, [0, 1, 4, 9, 16])
    """

    @named("Pool.__init__")
    def __init__(
        self,
        endpoint: str | None = None,
        token: str | None = None,
        workers: int | None = None,
        *,
        max_workers: int | None = None,
        memory_mb: int | None = None,
        threads_per_task: int | None = None,
        patience_s: float = 300.0,
        task_timeout_s: float | None = None,
        retries: int = 0,
        retry_on: RetryOn = Exception,
        output: "Output" = "print",
        progress: bool | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
    ) -> None:
        endpoint, token = address("endpoint", endpoint), address("token", token)
        options = PoolOptions(
            workers=executor_count(workers, max_workers),
            memory_mb=memory_mb,
            threads_per_task=threads_per_task,
            patience_s=patience_s,
            task_timeout_s=task_timeout_s,
            retry=read_retry(retries, retry_on),
            output=output,
            progress=progress,
            initializer=initializer,
            initargs=initargs,  # type: ignore[arg-type]  # PoolOptions makes a tuple of it
        )
        if endpoint not in {None, LOCAL}:
            options.refuse_local_ones()
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._shut_down = False
        with ShortTracebacks():
            self._connect(endpoint, token, options)

    def _connect(self, endpoint: str | None, token: str | None, options: PoolOptions) -> None:
        of_task = None if options.are_local else of_the_task()
        configuration = configure(endpoint, token, of_task=of_task)
        self._is_found_in_tasks = configuration is None or configuration is of_task
        if configuration is not None:
            _warn_of_ignored(options, configuration.source)
        self._lifetime = Lifetime(configuration, options)
        self._client = self._lifetime.client
        self._end = weakref.finalize(self, self._lifetime.finish, wait=False)
        self._end.atexit = False  # at exit, Lifetime waits for the tasks and shuts the pool down
        if self._lifetime.cluster is None:
            first_contact(self._lifetime)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "TaskFuture[T]":
        """Run `fn(*args, **kwargs)` on an executor; see `concurrent.futures.Executor.submit`.

        The future's `cancel` also stops a task that is already running. Tasks that are submitted in quick succession
        usually share a package. The future's `package_id` and `task_index` name this package and the task in it.

        Raises:
            SerializationError: The function or an argument cannot be serialized; the text names the part that is the
                cause.
            TooLarge: The function, with what it captures, takes more than 1 GiB.
            TypeError: `fn` is not callable, or is an async function.
            RuntimeError: The pool is shut down, this process is a fork of the process that made the pool, or no thread
                can start.
            CloudparError: The pool has lost its master.

        Example:
            >>> from cloudpar import Pool
            >>> with Pool(workers=2) as pool:
            ...     pool.submit(divmod, 17, 5).result()
            (3, 2)
        """
        __tracebackhide__ = True
        self._check()
        with ShortTracebacks():
            return self._client.submit(fn, args, kwargs)

    def attach(self, package_id: str) -> "Attachment[Any]":
        """Read the results of a package that this or another process started.

        Args:
            package_id: The id, from `MapResults.package_id`, `TaskFuture.package_id` or `detach`. The first characters
                of the id are enough if only one of the account's newest 1,000 packages has an id that starts with them.

        Returns:
            An object to iterate over; its method `results` returns all values in task order. Reading raises NotFound if
                there is no such package, and Gone if the package was deleted. Start to read before this pool shuts
                down, because the shutdown waits only for attached packages that the program is reading.

        Raises:
            NotFound: `package_id` is shorter than an id. Among the ids of the newest 1,000 packages, none starts with
                it, or several do.
            TypeError: The id is not a string.
            ValueError: The id is empty.
            RuntimeError: The pool is shut down, this process is a fork of the process that made the pool, or no thread
                can start.
            CloudparError: The master refuses a request or does not answer, or the pool has lost its master.
        """
        __tracebackhide__ = True
        self._check()
        given: object = package_id
        if not isinstance(given, str):
            raise TypeError(f"package_id={given!r}: give the id as text, such as results.package_id")
        with ShortTracebacks():
            return self._client.attach(package_id, keep=self)

    def detach(self) -> list[str]:
        """Shut this pool down, and let its packages continue.

        Returns:
            The ids of the packages that have unread results, and of the attached packages that this pool has not
                acknowledged. Pass these ids to `attach` in another process.

        Raises:
            ValueError: The pool started its own master, which stops with the pool.
            RuntimeError: The pool is shut down, or this process is a fork of the process that made the pool.
        """
        self._check()
        if self._lifetime.cluster is not None:
            raise ValueError(
                "this pool started its own master, which stops with it: for packages that run on, start a master with "
                "`cloudpar up`, and give its endpoint and token to the pool"
            )
        with self._lock:
            self._shut_down = True
        package_ids = self._client.detach()
        self._end.detach()
        self._lifetime.finish(wait=False)
        return package_ids

    @property
    def last_report(self) -> "Report | None":
        """The measurements of the package that ended last (see `Report`); None before the first package ends."""
        last = self._client.session.packages.last
        return None if last is None else last.report()

    @property
    def _max_workers(self) -> int:
        """The number of tasks that a library such as Dask keeps submitted at a time. Dask reads this attribute."""
        return SUBMITTED_AHEAD

    @property
    def executors(self) -> int | None:
        """The number of executors of the pool's own worker; None if the pool has a master elsewhere."""
        cluster = self._lifetime.cluster
        return None if cluster is None else cluster.workers

    @property
    def endpoint(self) -> str:
        """The master's URL."""
        return self._lifetime.endpoint

    @named("Pool.shutdown")
    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more tasks, and stop the pool when its tasks are done; see `concurrent.futures.Executor.shutdown`.

        If the last `next` of a map raised a task's exception, the map's unfinished tasks are cancelled. In a fork of
        the process that made the pool, this method does nothing.

        Args:
            wait: Whether to wait until all tasks are done and all resources are free. If False, the pool waits and
                stops in the background.
            cancel_futures: Whether to cancel the tasks that no worker has taken. A worker finishes the tasks that it
                has taken, including those that it has not started yet.

        Raises:
            TypeError: `wait` or `cancel_futures` is not a boolean.
            CloudparError: With `cancel_futures`, the master refuses the request or does not answer. In this case the
                pool stops in the background when its tasks are done.
        """
        wait, cancel_futures = flag("wait", wait), flag("cancel_futures", cancel_futures)
        if os.getpid() != self._pid:
            return
        with self._lock:
            first, self._shut_down = not self._shut_down, True
        if first:
            self._end.detach()
            self._client.drop_failed_maps()
        if cancel_futures:
            try:
                self._client.cancel_queued()
            except BaseException:
                self._lifetime.finish(wait=False)  # otherwise the pool's processes would run until the program ends
                raise
        self._lifetime.finish(wait=wait)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt) and os.getpid() == self._pid:
            self._client.interrupt()
        self.shutdown(wait=True)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: a pickle cannot contain connections, and must not contain the token.

        Raises:
            SerializationError: Always; the text says what to do in a task instead.
        """
        call = "Pool(), which is this pool there" if self._is_found_in_tasks else "Pool(endpoint, token)"
        raise SerializationError(
            f"cannot pickle a Pool, which belongs to its process: make one inside the task, by {call}. While the task "
            "waits for tasks of its own, other tasks use its core"
        )

    def __repr__(self) -> str:
        if "_client" not in vars(self):
            return "<Pool that did not start>"
        cluster = self._lifetime.cluster
        here = "" if cluster is None else f"of {quantity(cluster.workers, 'executor')} on this machine"
        packages = quantity(len(self._client.session.packages.unfinished()), "package")
        return f"<Pool {here or f'at {self.endpoint}'}, {'shut down' if self._shut_down else f'{packages} under way'}>"

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(
                f"this pool belongs to process {self._pid}: threads and connections do not survive a fork, so make "
                "a Pool in the child"
            )
        if self._shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")


def _warn_of_ignored(options: PoolOptions, source: str) -> None:
    if options.workers is not None:
        log.warning(
            "cloudpar: workers=%d is ignored: there is a master, named by %s, with workers of its own. "
            'Pool("local", workers=%d) is a pool on this machine.',
            options.workers, source, options.workers,
        )  # fmt: skip
    if options.memory_mb is not None:
        log.warning(
            "cloudpar: memory_mb=%d is ignored: there is a master, named by %s, whose workers have their own limit "
            "(--memory-mb of `cloudpar up` and `cloudpar worker`).",
            options.memory_mb, source,
        )  # fmt: skip
