import os
from pathlib import Path

import pytest

from cloudpar._serialization.project.files import File
from cloudpar._serialization.project.imports import of_file


def imported(folder: Path, text: str) -> set[str]:
    path = folder / "module.py"
    path.write_text(text)
    status = os.stat(path)  # noqa: PTH116 - the code under test calls it
    file = File("firm/module.py", str(path), status.st_size, (status.st_mtime_ns, hash(text)))
    return set(of_file(file, "firm"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import a.b, c as d  # and more", {"a.b", "c"}),
        ("import a, \\\n    b, \\\n    c", {"a", "b", "c"}),
        ("import a, \\\r\n    b", {"a", "b"}),
        ("import \\\n    a", {"a"}),
        ("from a import b, \\\n    c as d", {"a", "a.b", "a.c"}),
        ("from a \\\n  import \\\n b", {"a", "a.b"}),
        ("from \\\n    .a import b", {"firm.a", "firm.a.b"}),
        ("from a import (\n    b,  # first\n    c,\n)", {"a", "a.b", "a.c"}),
        ("from.a import b", {"firm.a", "firm.a.b"}),
        ("from . import a", {"firm", "firm.a"}),
        ("import a; import b;from c import d", {"a", "b", "c", "c.d"}),
        ("try: import a\nexcept ImportError: from b import c", {"a", "b", "b.c"}),
        ("def f():\n\timport a", {"a"}),
        ("if x: \\\n  import a", {"a"}),
    ],
)
def test_every_form_of_import_is_found(tmp_path: Path, text: str, found: set[str]) -> None:
    compile(text, "module.py", "exec")
    assert imported(tmp_path, text) == found
