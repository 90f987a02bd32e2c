"""Finds the part of an object that cannot be pickled, and names it for the error message."""

import itertools
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

DEPTH, WIDTH = 12, 200

_ANY_ADVICE = "leave it out, or make it inside the task (open files, locks, connections and generators stay here)"
_FUTURE = (
    "a future stays here, and its value may travel: give what its result() returns, or submit the task that needs it "
    "in its add_done_callback"
)
_FILE = "open it inside the task, by its path; or give what its read() returns"
_STANDARD_INPUT = "read it here, and give the text: standard input belongs to this process"
_ADVICE = {
    **dict.fromkeys(
        (
            *("_io.TextIOWrapper", "_io.BufferedReader", "_io.BufferedWriter", "_io.BufferedRandom", "_io.FileIO"),
            *("tempfile._TemporaryFileWrapper", "tempfile.SpooledTemporaryFile", "codecs.StreamReaderWriter"),
            *("gzip.GzipFile", "bz2.BZ2File", "lzma.LZMAFile"),
        ),
        _FILE,
    ),
    "concurrent.futures._base.Future": _FUTURE,
    "_asyncio.Future": "give its value: await it before the call",
    "asyncio.futures.Future": "give its value: await it before the call",
    "builtins.coroutine": "await it before the call, and give its value",
    "builtins.generator": "give a list of its values, or make the generator inside the task",
    "cloudpar.map_results.MapResults": "give list(results), or map over the results themselves",
    "concurrent.futures._base.Executor": "a pool stays here: a task that starts tasks makes one inside, by Pool()",
}
"""The advice for each class, by the name of the class or of a base class, so that the classes need not be imported."""


class Call(NamedTuple):
    """The arguments of a call. An error message names an argument by its position or keyword, and by `function`."""

    function: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Place(NamedTuple):
    """The position of a part of a value: `path`, such as "['lock']" or ".connection", in the value named `whole`."""

    whole: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.path} in {self.whole}" if self.path else self.whole

    def at(self, step: str) -> "Place":
        """Return the position of a part one level below this position. `step` is the last piece of the part's path."""
        return Place(self.whole, self.path + step)


def culprit(value: object, name: str, dumps: Callable[[object], object]) -> tuple[str, object]:
    """Find the innermost part of `value` that `dumps` refuses; return its position as text, and the part.

    The search does not go inside a part for which there is advice. The search goes down at most DEPTH levels, and looks
    only at the first WIDTH parts of each value.
    """
    place, seen = Place(name), set[int]()
    for _ in range(DEPTH):
        if _known_advice(value):
            break  # advice for this type helps more than advice for one of its parts, such as a lock
        seen.add(id(value))
        for part_place, part in _parts(value, place):
            if id(part) not in seen and not _passes(part, dumps):
                value, place = part, part_place
                break
        else:
            break
    kind = "" if isinstance(value, Call) else f" ({type(value).__module__}.{type(value).__qualname__})"
    return f"{place}{kind}".replace("builtins.", ""), value


def advice_for(part: object) -> str:
    """Return advice about a part that cannot be pickled."""
    return _known_advice(part) or _ANY_ADVICE


def _known_advice(part: object) -> str | None:
    if part is sys.stdin and part is not None:
        return _STANDARD_INPUT
    kinds = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(part).__mro__]
    return next((_ADVICE[kind] for kind in kinds if kind in _ADVICE), None)


def _passes(part: object, dumps: Callable[[object], object]) -> bool:
    try:
        dumps(part)
    except Exception:  # noqa: BLE001 - users' reducers may raise anything
        return False
    return True


def _parts(value: object, place: Place) -> Iterator[tuple[Place, object]]:
    return itertools.islice(_all_parts(value, place), WIDTH)


def _all_parts(value: object, place: Place) -> Iterator[tuple[Place, object]]:
    match value:
        case Call():
            of = f"of {value.function}"
            yield from ((Place(f"argument {number} {of}"), part) for number, part in enumerate(value.args, 1))
            yield from ((Place(f"argument {key}= {of}"), part) for key, part in value.kwargs.items())
        case dict() | list() | tuple() | set() | frozenset():
            yield from _elements(value, place)
        case types.FunctionType():
            yield from ((Place(name), part) for name, part in _function_parts(value))
        case types.MethodType():
            yield place.at(".__self__"), value.__self__
            yield place, value.__func__
        case types.BuiltinMethodType() if not isinstance(value.__self__, types.ModuleType | None):
            yield place.at(".__self__"), value.__self__
        case partial():
            yield place.at(".func"), value.func
            yield place.at(".args"), value.args
            yield place.at(".keywords"), value.keywords
        case types.ModuleType():
            yield from ((Place(f"{value.__name__}.{key}"), part) for key, part in list(vars(value).items()))
        case type():
            yield from ((Place(f"{value.__qualname__}.{key}"), part) for key, part in list(vars(value).items()))
        case _:
            yield from _attributes(value, place)


def _elements(value: Iterable[Any], place: Place) -> Iterator[tuple[Place, object]]:
    if isinstance(value, dict):
        for key, part in list(value.items()):
            yield place.at(f"[{key!r}]"), part
            yield Place(f"the key {key!r} of {place}"), key
    elif isinstance(value, set | frozenset):
        yield from ((Place(f"an element of {place}"), part) for part in value)
    else:
        yield from ((place.at(f"[{number}]"), part) for number, part in enumerate(value))


def _attributes(value: object, place: Place) -> Iterator[tuple[Place, object]]:
    slots = [slot for kind in type(value).__mro__ for slot in getattr(kind, "__slots__", ())]
    for key in [*getattr(value, "__dict__", {}), *slots]:
        if hasattr(value, key):
            yield place.at(f".{key}"), getattr(value, key)
    if isinstance(value, BaseException):
        yield place.at(".args"), value.args


def _function_parts(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    of = f"of {function.__qualname__}"
    for key, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"the captured variable `{key}` {of}", cell.cell_contents
        except ValueError:  # the variable is not bound yet
            continue
    for key in _global_names(function.__code__):
        if key in function.__globals__:
            yield f"the global `{key}` that {function.__qualname__} uses", function.__globals__[key]
    for number, part in enumerate(function.__defaults__ or ()):
        yield f"default {number} {of}", part
    for key, part in (function.__kwdefaults__ or {}).items():
        yield f"the default of `{key}` {of}", part


def _global_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)
