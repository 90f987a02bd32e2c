"""Adds to a pickled function the globals and submodules that only its nested classes and functions use.

With a function, `cloudpickle` sends the globals that the function's code loads by LOAD_GLOBAL. A class body loads
globals by other instructions, because the name may also be an attribute of the class. Without the globals of class
bodies, a task would raise a NameError. Also, cloudpickle looks for submodules, such as `xml.dom` of `xml`, only in the
function's outermost code. This module completes functions in task code, in task data and in results.
"""

import dis
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

_OF_GLOBALS = frozenset({"LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"})
_OF_MODULES = frozenset({"__name__", "__package__", "__path__", "__file__"})
"""Globals that every module has in any process, so that nothing needs to be added."""
_JUMPS = frozenset({*dis.hasjrel, *dis.hasjabs})


@lru_cache(maxsize=4096)
def global_names(code: CodeType) -> tuple[str, ...]:
    """Return the names that code, including nested code, may look up among its module's globals."""
    found = dict.fromkeys(_looked_up(code))
    for inner in _inner(code):
        found.update(dict.fromkeys(global_names(inner)))
    return tuple(found)


def _looked_up(code: CodeType) -> Iterator[str]:
    """Yield the names that one code object looks up.

    If a class body has certainly assigned a name before it looks the name up, the name is left out. The class body does
    not use the global of this name, and this global may be an object that cannot be pickled.
    """
    own = set[str]()
    straight = not code.co_exceptiontable
    for each in dis.get_instructions(code):
        name, straight = each.argval, straight and each.opcode not in _JUMPS
        if each.opname in _OF_GLOBALS:
            yield name
        elif each.opname == "LOAD_NAME":
            if name not in own and name not in _OF_MODULES:
                yield name
        elif each.opname == "STORE_NAME" and straight:
            own.add(name)
        elif each.opname == "DELETE_NAME":
            own.discard(name)


def submodules(function: FunctionType) -> list[ModuleType]:
    """Return the imported submodules that a function, or code in it, may reach as attributes, such as `xml.dom`."""
    known = [function.__globals__.get(name) for name in global_names(function.__code__)]
    for cell in function.__closure__ or ():
        try:
            known.append(cell.cell_contents)
        except ValueError:  # the variable is not bound yet
            continue
    packages = [each for each in known if isinstance(each, ModuleType) and hasattr(each, "__path__")]
    if not packages:
        return []
    prefixes = tuple(f"{package.__name__}." for package in packages)
    attributes = [set(code.co_names) for code in _all(function.__code__)]
    imported: list[tuple[str, object]] = list(sys.modules.items())
    return [
        module
        for name, module in imported
        if name.startswith(prefixes) and isinstance(module, ModuleType) and _is_reached(name, prefixes, attributes)
    ]


def _is_reached(name: str, prefixes: tuple[str, ...], attributes: list[set[str]]) -> bool:
    paths = [set(name.removeprefix(prefix).split(".")) for prefix in prefixes if name.startswith(prefix)]
    return any(path <= names for path in paths for names in attributes)


def complete(reduced: Any, function: FunctionType) -> Any:
    """Add the missing globals and submodules to the value that `cloudpickle` makes of a function.

    Args:
        reduced: The result of cloudpickle's `reducer_override`; NotImplemented if the function travels by name.
        function: The function.
    """
    if reduced is NotImplemented or not any(_inner(function.__code__)):
        return reduced
    slots = reduced[2][1]
    there, names = function.__globals__, global_names(function.__code__)
    slots["__globals__"].update({name: there[name] for name in names if name in there})
    known = list(map(id, slots["_cloudpickle_submodules"]))
    slots["_cloudpickle_submodules"] += [each for each in submodules(function) if id(each) not in known]
    return reduced


def _inner(code: CodeType) -> Iterator[CodeType]:
    return (constant for constant in code.co_consts if isinstance(constant, CodeType))


def _all(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in _inner(code):
        yield from _all(inner)
