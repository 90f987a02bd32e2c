"""Computes the units that DynamoDB charges for a call, by its published rules.

Neither moto nor DynamoDB Local computes them.
"""

import base64
from collections.abc import Mapping
from math import ceil
from typing import Any, NamedTuple

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType

from aws.stores import CONTRACT, REGION

READ_BYTES, WRITE_BYTES = 4096, 1024
TRANSACTION_WRITES = 2
"""How many writes DynamoDB charges for each row of a table that a transaction writes."""

Row = Mapping[str, Any]
"""A row's attributes in the form of AWS's library, such as {"pk": {"S": "a"}}."""


class StoredRow(NamedTuple):
    """The size of a stored row in bytes, and its entry in each index. A missing row has 0 bytes and no entries."""

    size: int
    entries: dict[str, tuple[str, ...]]


def written(operation: str, asked: Mapping[str, Any]) -> list[tuple[str, Row]]:
    """Return the rows that a call writes, each with its table; only the key of a row if the call has only the key."""
    if operation in {"PutItem", "UpdateItem"}:
        actions = [asked]
    elif operation == "TransactWriteItems":
        actions = [action for item in asked["TransactItems"] for action in item.values()]
    elif operation == "BatchWriteItem":
        actions = [
            {"TableName": table, **request}
            for table, requests in asked["RequestItems"].items()
            for each in requests
            for request in each.values()
        ]
    else:
        return []
    return [(action["TableName"], action.get("Item") or action["Key"]) for action in actions]


def stored(table: str, key: Row) -> StoredRow:
    """Return the size and the index entries of a row, as moto stores it."""
    row = _find(table, key)
    indexes = CONTRACT["packageTable"]["indexes"] if table.endswith("-packages") else {}
    entries = {
        name: tuple(
            map(repr, (row[keys["partitionKey"]], row[keys["sortKey"]], *map(row.get, keys.get("includes", []))))
        )
        for name, keys in indexes.items()
        if keys["partitionKey"] in row and keys["sortKey"] in row
    }
    return StoredRow(_size(row), entries)


def write_units(operation: str, asked: Mapping[str, Any], before: list[StoredRow]) -> int:
    """Return the units that a call is charged for its writes, whether their conditions held or not."""
    times = TRANSACTION_WRITES if operation == "TransactWriteItems" else 1
    total = 0
    for (table, row), old in zip(written(operation, asked), before, strict=True):
        new = stored(table, row)
        total += times * max(1, ceil(max(_size(row), old.size, new.size) / WRITE_BYTES))
        total += sum(_index_writes(old.entries.get(name), new.entries.get(name)) for name in old.entries | new.entries)
    return total


def _index_writes(old: tuple[str, ...] | None, new: tuple[str, ...] | None) -> int:
    """Return the units of a change of an index's entry, one for each write, since entries are small.

    An entry whose keys change takes two writes: it is removed and made again.
    """
    if old == new:
        return 0
    return 2 if old and new and old[:2] != new[:2] else 1


def read_units(operation: str, asked: Mapping[str, Any], answer: Mapping[str, Any]) -> float:
    """Return the units that a call is charged for its reads.

    The rows of a query are charged by their total size. All other rows are charged one by one, even if they do not
    exist.
    """
    if operation == "GetItem":
        return _read(_size(answer.get("Item", {})), asked)
    if operation == "BatchGetItem":
        wanted = asked["RequestItems"].items()
        return sum(_read(_size(_find(table, key)), keys) for table, keys in wanted for key in keys["Keys"])
    if operation == "Query":
        rows = answer["Items"] if "IndexName" in asked else (_find(asked["TableName"], row) for row in answer["Items"])
        return _read(sum(map(_size, rows)), asked)
    return 0


def _read(size: int, asked: Mapping[str, Any]) -> float:
    return max(1, ceil(size / READ_BYTES)) * (1.0 if asked.get("ConsistentRead") else 0.5)


def _find(table: str, key: Row) -> Row:
    rows = dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].get_table(table)
    found = rows.get_item(DynamoType(key["pk"]), DynamoType(key["sk"]))
    return {} if found is None else {name: {each.type: each.value} for name, each in found.attrs.items()}


def _size(row: Row) -> int:
    """Return the size of a row's names and values, in bytes; a number takes about half a byte for each digit."""
    return sum(len(name) + _value_bytes(*next(iter(value.items()))) for name, value in row.items())


def _value_bytes(kind: str, content: Any) -> int:
    if kind == "N":
        return len(content) // 2 + 2
    return len(base64.b64decode(content) if kind == "B" and isinstance(content, str) else content)
