"""A task for an image that has nothing of these tests: it travels as a file, which must import nothing of them."""

import os
import sys


def whereabouts(_: int) -> tuple[int, str, str]:
    """Who runs this, on what, and what the user's requirements brought."""
    import editables  # noqa: PLC0415  # only there

    return os.getuid(), sys.prefix, editables.__file__
