"""Finds the function that a reference such as "package.module:function" names on this worker."""

import platform
from importlib import import_module
from typing import Any

from .failures import add_note, missing_module, remote_traceback, traceback_of


def find(reference: str) -> Any:
    """Import the module of a reference, and return the object that the reference names.

    Raises:
        ModuleNotFoundError: The module, or a module that it imports, is missing; the text says what to do.
        AttributeError: The module has nothing of that name; the text says what to do.
        BaseException: The import of the module raised this exception; a note has the traceback. Or code of the module,
            such as its `__getattr__`, raised the exception when the name was looked up.
    """
    module_name, _, path = reference.partition(":")
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        name = missing_module(error)
        raise ModuleNotFoundError(
            f"{_here()} has no module {name!r}, which the task code {reference!r} needs: install the package "
            "that holds it at the worker, or put its folder on the worker's PYTHONPATH",
            name=name,
        ) from None
    except BaseException as error:  # an imported module may raise anything
        add_note(error, f"Raised while {_here()} imported it:\n{remote_traceback(error, traceback_of(error))}")
        raise
    for name in path.split("."):
        if not hasattr(found, name):
            file = getattr(import_module(module_name), "__file__", None)
            raise AttributeError(
                f"the module {module_name!r} of {_here()}, in {file}, has no {path!r}: correct the reference "
                f"{reference!r}, install at the worker the release of the package that has it, or restart the worker, "
                "if the file has changed since it started"
            )
        found = getattr(found, name)
    return found


def _here() -> str:
    return f"the worker on {platform.node()} (Python {platform.python_version()})"
