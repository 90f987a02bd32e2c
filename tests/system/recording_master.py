"""`python -m system.recording_master`: a master that keeps a journal of its workers; all else is as it always is."""

import os
import sys
from pathlib import Path

from cloudpar_master.__main__ import main
from cloudpar_master.services.dispatcher import Dispatcher
from system.journal import JOURNAL, recorded

if __name__ == "__main__":
    Dispatcher.perform = recorded(Dispatcher.perform, Path(os.environ[JOURNAL]))  # type: ignore[assignment, method-assign]
    sys.exit(main())
