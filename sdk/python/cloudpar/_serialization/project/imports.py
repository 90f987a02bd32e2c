"""Finds the modules that code imports, in its text or bytecode, without running it."""

import dis
import re
from functools import lru_cache
from pathlib import Path
from types import CodeType

from .files import File

_IMPORT_NAME = dis.opmap["IMPORT_NAME"]
_STATEMENT = re.compile(
    r"(?:^|[;:])[ \t\f]*(?:from[ \t]*(?P<source>[\w.]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n#;]*)"
    r"|import[ \t]+(?P<plain>[^\n#;]+))",
    re.MULTILINE,
)
_CONTINUED = re.compile(r"\\\r?\n")
"""A continued line: a backslash at the end of a line."""

_OF_MODULES = frozenset({"__file__", "__name__", "__package__", "__path__", "__spec__"})
_COMMENT = re.compile(r"#[^\n]*")


def of_code(code: CodeType, module: str | None) -> set[str]:
    """The modules that a function and its nested functions may import while they run.

    Args:
        code: The function's code.
        module: The function's module. The result includes this module in two cases. Either the code imports something,
            since the import may be relative. Or the code uses a name such as `__file__`, since it may read files beside
            the module.
    """
    found = set[str]()
    if _IMPORT_NAME in code.co_code[::2]:
        found = {str(each.argval) for each in dis.get_instructions(code) if each.opcode == _IMPORT_NAME and each.argval}
    if module is not None and (found or not _OF_MODULES.isdisjoint(code.co_names)):
        found.add(module)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= of_code(constant, module)
    return found


@lru_cache(maxsize=4096)
def of_file(file: File, package: str) -> frozenset[str]:
    """The modules that a source file may import; empty if the file cannot be read.

    The cache's key contains the file's times, so a changed file is read again.

    Args:
        file: The source file.
        package: The Python package of the file, to which relative imports refer; "" if the file is in no package.
    """
    try:
        text = Path(file.path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    found = set[str]()
    for match in _STATEMENT.finditer(_CONTINUED.sub(" ", text)):
        if match["plain"] is not None:
            found |= {part.split()[0] for part in match["plain"].split(",") if part.split()}
            continue
        source = _absolute(match["source"], package)
        names = re.findall(r"(\w+)(?:[ \t]+as[ \t]+\w+)?", _COMMENT.sub("", match["names"]))
        found |= {source, *(f"{source}.{name}" for name in names)} if source else set(names)
    return frozenset(found)


def _absolute(source: str, package: str) -> str:
    name = source.lstrip(".")
    dots = len(source) - len(name)
    if not dots:
        return name
    parents = package.split(".") if package else []
    base = ".".join(parents[: max(len(parents) - dots + 1, 0)])
    return f"{base}.{name}".strip(".")
