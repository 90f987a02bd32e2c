"""The transition of a package: the next head, computed from the current head and from events."""

from .package import Folded, fold

__all__ = ["Folded", "fold"]
