"""`python -m system.recording_master` is a master that keeps a journal of its workers, and otherwise the usual one."""

import os
import sys
from pathlib import Path

from cloudpar_master.__main__ import main
from cloudpar_master.services.dispatcher import Dispatcher
from system.journal import JOURNAL, recorded

if __name__ == "__main__":
    Dispatcher.steps = recorded(Dispatcher.steps, Path(os.environ[JOURNAL]))  # type: ignore[assignment, method-assign]
    sys.exit(main())
