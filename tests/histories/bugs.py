"""Masters with a bug, each of which the checker must notice in what real clients record."""

from types import SimpleNamespace
from typing import Any, Final

import pytest

from cloudpar_master.services import package_awaits, package_starts, result_pages
from simulation.bugs import Bug, a_result_counts_again


def bodies_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    """A key that is used with another body gets the package of the first one."""
    same = SimpleNamespace(hexdigest=lambda: "0" * 64)
    patch.setattr(package_starts, "hashlib", SimpleNamespace(sha256=lambda _: same))


def cursors_go_too_far(patch: pytest.MonkeyPatch) -> None:
    """A client that reads on misses the next page of results."""
    original = result_pages.read_results

    def read_results(*arguments: Any) -> Any:
        page = original(*arguments)
        return page._replace(cursor=page.cursor + bool(page.results))

    patch.setattr(package_awaits, "read_results", read_results)


BUGS: Final[dict[str, Bug]] = {
    bug.__name__: bug for bug in (bodies_are_not_compared, a_result_counts_again, cursors_go_too_far)
}
