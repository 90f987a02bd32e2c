"""A run is made once, and at chosen points a branch of it goes on in a process of its own.

So a break at the k-th call costs only what follows the call. moto keeps everything in memory, which a branch copies.
"""

import gc
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable

import pytest


class Branches:
    """Makes the branches of a run.

    Attributes:
        is_branch: Whether this process is a branch.
        ended: How many branches have ended well.
    """

    def __init__(self) -> None:
        self.is_branch = False
        self.ended = 0
        self._says: int | None = None

    def branch(self, name: str) -> bool:
        """Return True in a new branch, and then False in the run itself.

        Raises:
            pytest.fail.Exception: The branch failed. It is no `Exception`, since the tested code catches these.
        """
        hears, says = os.pipe()
        with warnings.catch_warnings():
            # The test runner has threads. A branch needs none of them, and takes none of their locks.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
        if process == 0:
            os.close(hears)
            self.is_branch, self._says = True, says
            return True
        os.close(says)
        try:
            with os.fdopen(hears, encoding="utf-8", errors="replace") as heard:
                said = heard.read()
        except BaseException:  # the test took too long, or the user interrupts it
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            raise
        _, status = os.waitpid(process, 0)
        if status:
            pytest.fail(f"{name}: {said or f'wait status {status}'}")
        self.ended += 1
        return False

    def run(self, run: Callable[[], object]) -> None:
        """Make a run with its branches. A branch does not return from here."""
        gc.collect()
        gc.freeze()  # a collection in a branch would copy all of the memory
        try:
            run()
        except BaseException:
            if self.is_branch:
                self._end(traceback.format_exc())
            raise
        finally:
            gc.unfreeze()
        if self.is_branch:
            self._end("")

    def _end(self, failure: str) -> None:
        """End a branch at once: what would be cleaned up belongs to the run."""
        assert self._says is not None
        sys.stdout.flush()
        os.write(self._says, failure[-60_000:].encode())
        os._exit(bool(failure))
