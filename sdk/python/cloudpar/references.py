"""`reference`: task code as the name of a function that is installed at the workers."""

from importlib import import_module
from typing import Any

import msgspec

from cloudpar_protocol import payloads


class Reference:
    """The name of a function in an installed module. `reference` returns such an object."""

    def __init__(self, text: str) -> None:
        try:
            self.text: str = msgspec.convert(text, payloads.Reference)
        except msgspec.ValidationError:
            raise ValueError(
                f"{text!r} names no function: write 'package.module:function', in at most 200 letters, digits, "
                "underscores and dots"
            ) from None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Import the function in this process and call it."""
        module, _, path = self.text.partition(":")
        function: Any = import_module(module)
        for name in path.split("."):
            function = getattr(function, name)
        return function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"reference({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def reference(text: str) -> Reference:
    """Name a function that is installed at the workers, for `Pool.map` and `Pool.submit` in place of the function.

    Nothing is pickled: the workers import the function by its name, and arguments and results are sent as MessagePack.
    So the client and the workers may run different versions of Python (the SDK for JavaScript starts its tasks this
    way), and neither side executes bytes from the other side. There are three conditions:

    - Arguments and results are None, booleans, numbers of at most 64 bits, texts, bytes, datetimes with a time zone,
      and lists and dicts of these. A tuple or a set arrives as a list, a dataclass arrives as a dict, and a date, a
      Decimal or a UUID arrives as text.
    - An exception of the function arrives as a `TaskRaised` with the exception's text. Its cause is the remote
      traceback.
    - The module must be importable at the workers: install it there, or put its folder on their PYTHONPATH.

    In this process, calling the reference imports the function and calls it.

    Args:
        text: "package.module:function", or "package.module:Class.method".

    Raises:
        ValueError: The text does not have this form, or is longer than 200 characters.

    Example:
        >>> from cloudpar import Pool, reference
        >>> with Pool(workers=2) as pool:
        ...     roots = list(pool.map(reference("math:sqrt"), [1, 4, 9]))
        ...     text = pool.submit(reference("json:dumps"), {"b": 1, "a": 2}, sort_keys=True).result()
        >>> roots, text
        ([1.0, 2.0, 3.0], '{"a": 2, "b": 1}')
    """
    return Reference(text)
