"""Adds notes to exceptions whose cause may be a missing module, or a module of another release than the client has.

The note says what to do. If unpickling raised an exception of unknown cause, the note only names what was unpickled.
"""

import os
import platform
import sys
from contextlib import suppress
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from typing import Final

from .failures import add_note, missing_module

_OTHER_NAMES: Final = {
    "bs4": "beautifulsoup4", "cv2": "opencv-python-headless", "dateutil": "python-dateutil", "dotenv": "python-dotenv",
    "PIL": "pillow", "skimage": "scikit-image", "sklearn": "scikit-learn", "yaml": "pyyaml",
}  # fmt: skip
"""The distributions that contain these modules. They are listed because their names differ from the modules' names."""


def advise(error: BaseException, what: str) -> None:
    """Add a note that says what to do to an exception whose cause may be this worker's modules.

    If unpickling raised an exception of unknown cause, the note only names what was unpickled.

    Args:
        error: The exception.
        what: The source of the exception: "the task", or, if unpickling raised it, "the task code" or "the task data".
    """
    name = missing_module(error)
    if name and ModuleNotFoundError in type.mro(type(error)):
        add_note(error, _missing(name, what))
    elif what != "the task":
        version = None
        with suppress(BaseException):  # the exception may refer to any object, whose own code may raise
            version = _version_of(error, name)
        add_note(error, version or f"Raised at the worker while it unpickled {what}.")


@cache  # thousands of tasks may fail because of one module
def _missing(name: str, what: str) -> str:
    top = name.partition(".")[0]
    extension = _other_extension(name)
    if extension:
        return (
            f"{_here()} cannot load {extension}, which {what} needs: it was built for another platform or another "
            f"Python, and here such files end in {EXTENSION_SUFFIXES[0]}. Build and install {top!r} at the worker, or "
            "run the client where workers are alike."
        )
    if top in sys.stdlib_module_names:
        return (
            f"{_here()} has no module {name!r}, which {what} needs. {top!r} is a part of "
            f"Python, here {platform.python_version()}: check the name, and the client's version of Python."
        )
    release = release_of(top)
    if release:
        return (
            f"{_here()} has {release}, without {name!r}, which {what} needs: it is another release than the client's. "
            f"Install at the worker the one that {_how_to_see(top)} shows at the client, or that one here."
        )
    return (
        f"{_here()} has no module {name!r}, which {what} needs. Install {_OTHER_NAMES.get(top, top)!r} at the worker, "
        "if it is installed at the client. If it is a module of your own project, import it by a "
        "plain `import` in the function or at the top of its file, so that it travels with the task code."
    )


def _version_of(error: BaseException, name: str) -> str | None:
    """Return the note about a module that is here but lacks a name, probably because the client has another release.

    None if the module, or the distribution that contains it, is unknown.
    """
    top = name.partition(".")[0]
    if not name and isinstance(error, AttributeError):
        module = sys.modules.get(getattr(error.obj, "__name__", None) or "")
        top = module.__name__.partition(".")[0] if module is not None and module is error.obj else ""
    release = release_of(top) if top else None
    if release is None:
        return None
    return (
        f"{_here()} has {release}. If the client has another release ({_how_to_see(top)} shows it), have the same on "
        "both sides."
    )


@cache
def release_of(top: str) -> str | None:
    """Return the name and version of the distribution that contains a top-level module here.

    None if the module is not here, or if its distribution is unknown.
    """
    from importlib import metadata  # noqa: PLC0415 - imported only after a failure

    if PathFinder.find_spec(top) is None:
        return None
    try:
        names = metadata.packages_distributions().get(top, [])
        return f"{names[0]} {metadata.version(names[0])}" if names else None
    except (metadata.PackageNotFoundError, OSError):
        return None


def _other_extension(name: str) -> str | None:
    """Return the file of an extension module `name`, made for another interpreter; None if there is none."""
    package, _, last = name.rpartition(".")
    folders = list(getattr(sys.modules.get(package), "__path__", ())) if package else sys.path
    for folder in folders:
        try:
            names = os.listdir(folder or os.curdir)
        except OSError:
            continue
        for found in names:
            if found.startswith(f"{last}.") and found.endswith((".so", ".pyd", ".dylib")):
                return found
    return None


def _how_to_see(top: str) -> str:
    return f"`python -m pip show {_OTHER_NAMES.get(top, top)}`"


def _here() -> str:
    return f"The worker on {platform.node()} (Python {platform.python_version()})"
