"""The transition of a package: the next head, given the current one and what happened."""

from .package import Folded, fold

__all__ = ["Folded", "fold"]
