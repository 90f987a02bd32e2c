"""What tables and other drawings look like in a terminal."""

from rich.console import Console, RenderableType


def drawn(what: RenderableType, width: int = 200) -> str:
    """Return the text of a drawing in a terminal of this width."""
    console = Console(width=width)
    with console.capture() as capture:
        console.print(what)
    return capture.get()
