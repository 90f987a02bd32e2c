"""A task for an image that does not contain these tests: this file must not import any of them."""

import os
import sys


def whereabouts(_: int) -> tuple[int, str, str]:
    """The user id, the Python environment, and the path of a package from the user's requirements."""
    import editables

    return os.getuid(), sys.prefix, editables.__file__
