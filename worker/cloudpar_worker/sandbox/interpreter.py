"""Where this interpreter and its packages lie."""

import os
import sys


def folders() -> list[str]:
    """All of them, except the root of everything."""
    there = dict.fromkeys(os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, *sys.path) if path)
    return [path for path in there if path != "/" and os.path.isdir(path)]  # noqa: PTH112 - pathlib would be imported for this alone
