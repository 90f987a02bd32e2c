"""The pool as an executor of TaPS, which has applications and executors of other libraries.

    python -m bench.peers.taps --app cholesky --app.matrix-size 1000 --app.block-size 100 --engine.executor cloudpar

takes the arguments of `python -m taps.run`, and `cloudpar` as one more executor.
"""

import sys
from concurrent.futures import Executor
from typing import Literal

from pydantic import Field
from taps.executor import ExecutorConfig
from taps.executor.utils import FutureDependencyExecutor
from taps.plugins import register
from taps.run.main import main

from bench.peers.engine import WORKERS
from bench.peers.processes import in_a_child
from cloudpar import Pool


@register("executor")
class CloudparConfig(ExecutorConfig):  # type: ignore[misc]  # TaPS is in another venv
    """The pool, with a master and a worker of its own."""

    name: Literal["cloudpar"] = Field("cloudpar", description="Executor name.")
    workers: int = Field(WORKERS, description="Number of executors.")

    def get_executor(self) -> Executor:
        """Start the pool. It takes no futures as arguments, so TaPS waits for these, as for ProcessPoolExecutor."""
        executor: Executor = FutureDependencyExecutor(Pool("local", workers=self.workers, progress=False))
        return executor


if __name__ == "__main__":
    sys.exit(in_a_child(lambda: main(sys.argv[1:])))
