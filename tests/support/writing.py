"""An object that shows whether it was unpickled."""

from collections.abc import Callable
from pathlib import Path


class Writing:
    """An object that writes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self.marker,)
