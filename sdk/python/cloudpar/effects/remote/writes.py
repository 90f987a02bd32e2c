"""Encodes the writes of one task as bytes.

The bytes are the pickle of `("", [(number, keys, values), ...])`, or of `(problem, number, suffix, reason)` if a write
cannot be copied back. `number` is the number of the changed object, and `suffix` is `keys` of the finding (see
`containers`). `reason` is the text of an exception, or empty.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .containers import Finding

    Encode = Callable[[list[tuple[int, Finding]]], bytes]

_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes))


def encoding(
    kinds: list[str], refer: Callable[[Any], Any], dump: Callable[[Any], bytes], mark: Callable[[int], Any]
) -> Encode:
    """Return the function `encode(findings)`, which makes the bytes that this module's docstring describes.

    See `references.pickling` for `dump` and `mark`.
    """

    def plain(value: Any) -> bool:
        kind = type(value)
        if kind in _PLAIN:
            return True
        return kind in {list, tuple} and refer(value) is None and _PLAIN.issuperset(map(type, value))

    def encode(findings: list[tuple[int, Finding]]) -> bytes:
        for number, (problem, suffix, _, _) in findings:
            if problem:
                return pickle.dumps((problem, number, suffix, ""), pickle.HIGHEST_PROTOCOL)
        writes = [(number, keys, values) for number, (_, keys, values, _) in findings]
        # A pickler that calls `refer` for each object takes 20 us to create, and most writes are a number or a string.
        if all(type(values) is bytes or all(map(plain, (*keys, *values))) for _, keys, values in writes):
            return pickle.dumps(("", writes), pickle.HIGHEST_PROTOCOL)
        try:
            return dump(("", [(mark(number), keys, values) for number, keys, values in writes]))
        except Exception as error:  # noqa: BLE001 - a value's own pickling may raise anything
            number, suffix = _blame(kinds, writes, dump)
            reason = f"{type(error).__name__}: {error}"
            return pickle.dumps(("unpicklable", number, suffix, reason), pickle.HIGHEST_PROTOCOL)

    return encode


def _blame(kinds: list[str], writes: list[Any], dump: Callable[[Any], bytes]) -> tuple[int, str]:
    """Return the number and the suffix of the first write that cannot be pickled."""
    for number, keys, values in writes:
        kind = kinds[number]
        for key, value in [("", values)] if kind == "array" else zip(keys, values, strict=True):
            try:
                dump((key, value))
            except Exception:  # noqa: BLE001 - a value's own pickling may raise anything
                return number, {"array": "", "attributes": f".{key}"}.get(kind, f"[{key!r}]")
    return writes[0][0], ""
