"""Makes moto's tables fast enough to count packages of a million tasks.

For each query, moto sorts all rows of a table, and before each transaction it copies the table. A package of a million
tasks has thousands of result pages, so that counting it would take hours. Here a query looks only at the rows that it
can return, and no transaction copies the table. What moto then does with the rows, and the answers, stay the same.
"""

import inspect
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from aws.stores import REGION
from cloudpar_master.adapters.aws.result_pages import PAGE

AFTER = "\U0010ffff"
"""A text that is greater than all sort keys with the same start."""


class Rows(dict[Any, Any]):
    """The rows of a partition, in moto's form, which also finds rows by ranges of their sort keys."""

    def __init__(self) -> None:
        super().__init__()
        self._order: list[str] = []
        self._found: dict[str, Any] = {}

    def __setitem__(self, key: Any, row: Any) -> None:
        if key.value not in self._found:
            insort(self._order, key.value)
        self._found[key.value] = row
        super().__setitem__(key, row)

    def pop(self, key: Any, *default: Any) -> Any:
        """Remove a row, and return it."""
        if self._found.pop(key.value, None) is not None:
            del self._order[bisect_left(self._order, key.value)]
        return super().pop(key, *default)

    def between(self, first: str, last: str) -> list[Any]:
        """Return the rows whose sort keys are from `first` to `last`."""
        order, at = self._order, bisect_left(self._order, first)
        rows = []
        while at < len(order) and order[at] <= last:
            rows.append(self._found[order[at]])
            at += 1
        return rows

    def indexed(self) -> list[Any]:
        """Return the rows that an index may have: all but result pages."""
        return self.between("", PAGE) + self.between(PAGE + AFTER, AFTER)


class _QuickTable:
    """Takes the place of some methods of one of moto's tables."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self._query = table.query
        self._rows: list[Any] = []

    def all_items(self) -> list[Any]:
        return self._rows

    def query(self, *asked: Any, **more: Any) -> Any:
        hash_key, comparison, values, *_ = asked
        index = inspect.signature(self._query).bind(*asked, **more).arguments["index_name"]
        self._rows = self.indexed() if index else self._table.items[hash_key].between(*_bounds(comparison, values))
        return self._query(*asked, **more)

    def indexed(self) -> list[Any]:
        return [row for rows in self._table.items.values() for row in rows.indexed()]

    def has_idx_items(self, name: str) -> list[Any]:
        keys = {each["AttributeName"] for each in self._table.get_index(name).schema}
        return [row for row in self.indexed() if keys <= set(row.attrs)]


class _NotCopied:
    """Stands for the copy of a table. Moto uses the copy only to undo a transaction that it refuses."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError("moto has refused a transaction, but has no copy of the table to undo it")


def _bounds(comparison: str | None, values: Any) -> tuple[str, str]:
    if comparison is None:
        return "", AFTER
    if comparison == "BETWEEN":
        return values[0].value, values[1].value
    assert comparison == "BEGINS_WITH", comparison
    return values[0].value, values[0].value + AFTER


@contextmanager
def quick(*names: str) -> Iterator[None]:
    """Make these tables fast; they must be empty."""
    with ExitStack() as stack:
        for name in names:
            table = dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].get_table(name)
            table.items = defaultdict(Rows)
            here = _QuickTable(table)
            for method in ("all_items", "query", "has_idx_items"):
                stack.enter_context(patch.object(table, method, getattr(here, method)))
            stack.enter_context(patch.object(table, "__deepcopy__", lambda _: _NotCopied(), create=True))
        yield
