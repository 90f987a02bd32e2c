"""Thumbnails of all pictures of a folder.

    pip install '.[examples]'
    python examples/thumbnails.py ~/Pictures thumbnails

The pool sends pictures as bytes, so that this also works with workers on other machines, which do not see your files.
With `buffersize` the program reads pictures as results come back; a folder of any size fits into its memory.
"""

import argparse
from io import BytesIO
from pathlib import Path

from PIL import Image

from cloudpar import Pool

SUFFIXES = {".jpg", ".jpeg", ".png"}


def thumbnail(picture: bytes, size: int) -> bytes:
    """A JPEG file whose longer side has at most `size` pixels."""
    made = BytesIO()
    with Image.open(BytesIO(picture)) as image:
        small = image.convert("RGB")
        small.thumbnail((size, size))
        small.save(made, "JPEG", quality=85)
    return made.getvalue()


def main() -> None:
    """Read, map, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="a folder of pictures, also in its folders")
    parser.add_argument("target", type=Path, help="the folder of the thumbnails; it is made")
    parser.add_argument("--size", type=int, default=256, help="pixels of the longer side")
    arguments = parser.parse_args()
    paths = sorted(path for path in arguments.source.rglob("*") if path.suffix.lower() in SUFFIXES)
    pictures = (path.read_bytes() for path in paths)
    broken = 0
    with Pool() as pool:
        made = pool.map(
            lambda picture: thumbnail(picture, arguments.size), pictures, buffersize=64, return_exceptions=True
        )
        for path, result in zip(paths, made, strict=True):
            if isinstance(result, Exception):  # one broken file does not end the run
                print(f"{path}: {result}")
                broken += 1
                continue
            target = (arguments.target / path.relative_to(arguments.source)).with_suffix(".jpg")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(result)
    print(f"{len(paths) - broken} thumbnails in {arguments.target}, {broken} files that are no pictures")


if __name__ == "__main__":
    main()
