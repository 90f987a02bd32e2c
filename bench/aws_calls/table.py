"""DynamoDB in memory, as far as the adapters use it. It counts calls and the units that AWS charges for them."""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any, NamedTuple

from botocore.exceptions import ClientError

from .conditions import holds, plain, updated
from .counts import Counts

READ_BYTES, WRITE_BYTES = 4096, 1024
Row = dict[str, Any]


class Index(NamedTuple):
    """A sparse global index: its keys, and the other attributes that it holds."""

    partition: str
    sort: str
    includes: tuple[str, ...] = ()


INDEXES = {
    "due": Index("due", "due_at"),
    "uncut": Index("uncut", "uncut_since"),
    "account": Index("account", "started_at"),
    "unsettled": Index("unsettled", "started_at", ("tasks", "data_bytes")),
}


class Cancelled(ClientError):
    """A cancelled transaction."""


class _Exceptions:
    TransactionCanceledException = Cancelled


class Tables:
    """Stands in for a client of DynamoDB."""

    exceptions = _Exceptions()

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._rows: dict[tuple[str, str], dict[str, Row]] = defaultdict(dict)
        self._order: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._listed: dict[tuple[str, str], list[tuple[float, str, str]]] = defaultdict(list)

    def get_item(self, *, TableName: str, Key: Row, ConsistentRead: bool) -> dict[str, Any]:
        self._call("GetItem")
        row = self._find(TableName, Key)
        self._read(_size(row) if row else 0, strongly=ConsistentRead)
        return {"Item": row} if row else {}

    def batch_get_item(self, *, RequestItems: Any) -> dict[str, Any]:
        """Read several rows; AWS charges each of them separately."""
        self._call("BatchGetItem")
        found: dict[str, list[Row]] = {}
        for table, wanted in RequestItems.items():
            rows = [self._find(table, key) for key in wanted["Keys"]]
            for row in rows:
                self._read(_size(row) if row else 0, strongly=wanted["ConsistentRead"])
            found[table] = [row for row in rows if row]
        return {"Responses": found}

    def query(self, **asked: Any) -> dict[str, Any]:
        """Read up to a megabyte of rows of one partition; AWS charges for their total size."""
        self._call("Query")
        table, values = asked["TableName"], asked["ExpressionAttributeValues"]
        rows = self._index(asked, values) if "IndexName" in asked else self._between(table, asked, values)
        found: list[Row] = []
        size = 0
        more = False
        for row in rows:
            if size > 1_000_000 or len(found) == asked.get("Limit", -1):
                more = True
                break
            found.append(row)
            size += _size(row)
        self._read(size, strongly=asked.get("ConsistentRead", False))
        last = {"LastEvaluatedKey": {name: found[-1][name] for name in ("pk", "sk")}} if more else {}
        return {"Items": found, **last}

    def put_item(self, **action: Any) -> dict[str, Any]:
        self._call("PutItem")
        return self._write_one(action, action["Item"])

    def update_item(self, **action: Any) -> dict[str, Any]:
        self._call("UpdateItem")
        return self._write_one(action, self._after(action))

    def transact_write_items(self, *, TransactItems: Any) -> dict[str, Any]:
        """Carry out all actions or none, for twice the units."""
        self._call("TransactWriteItems")
        actions = [next(iter(item.values())) for item in TransactItems]
        stored = [self._find(action["TableName"], action.get("Item") or action["Key"]) for action in actions]
        reasons = [
            {"Code": "None"} if _allowed(action, row)
            else {"Code": "ConditionalCheckFailed", **({"Item": row} if row else {})}
            for action, row in zip(actions, stored, strict=True)
        ]  # fmt: skip
        cancelled = any(reason["Code"] != "None" for reason in reasons)
        for action, row in zip(actions, stored, strict=True):
            after = action.get("Item") or (row if cancelled else self._after(action)) or {}
            self._charge(max(_size(after), _size(row) if row else 0), times=2)
            if not cancelled:
                self._store(action["TableName"], after)
        if cancelled:
            response: Any = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}
            raise Cancelled(response, "TransactWriteItems")
        return {}

    def batch_write_item(self, *, RequestItems: Any) -> dict[str, Any]:
        self._call("BatchWriteItem")
        for table, requests in RequestItems.items():
            for request in requests:
                key = request["DeleteRequest"]["Key"]
                row = self._find(table, key)
                self._charge(_size(row) if row else 0)
                if row:
                    self._remove(table, row)
        return {}

    def _write_one(self, action: Mapping[str, Any], after: Row) -> dict[str, Any]:
        row = self._find(action["TableName"], after)
        self._charge(max(_size(after), _size(row) if row else 0))
        if not _allowed(action, row):
            response: Any = {"Error": {"Code": "ConditionalCheckFailedException"}, **({"Item": row} if row else {})}
            raise ClientError(response, "PutItem")
        self._store(action["TableName"], after)
        return {}

    def _after(self, action: Mapping[str, Any]) -> Row:
        row = self._find(action["TableName"], action["Key"]) or action["Key"]
        names = action.get("ExpressionAttributeNames", {})
        return updated(action["UpdateExpression"], row, action.get("ExpressionAttributeValues", {}), names)

    # storage

    def _find(self, table: str, key: Row) -> Row | None:
        return self._rows[table, key["pk"]["S"]].get(key["sk"]["S"])

    def _store(self, table: str, row: Row) -> None:
        before = self._find(table, row)
        pk, sk = row["pk"]["S"], row["sk"]["S"]
        if before is None:
            insort(self._order[table, pk], sk)
        self._rows[table, pk][sk] = row
        self._index_changed(before, row)

    def _remove(self, table: str, row: Row) -> None:
        pk, sk = row["pk"]["S"], row["sk"]["S"]
        del self._rows[table, pk][sk]
        self._order[table, pk].remove(sk)
        self._index_changed(row, None)

    def _index_changed(self, before: Row | None, after: Row | None) -> None:
        for name, index in INDEXES.items():
            old, new = _entry(index, before), _entry(index, after)
            if old == new:
                continue
            for row, entry, change in ((before, old, list.remove), (after, new, insort)):
                if row is not None and entry is not None and (old is None or new is None or old[:2] != new[:2]):
                    listed = self._listed[name, plain(row[index.partition])]
                    change(listed, (plain(row[index.sort]), row["pk"]["S"], row["sk"]["S"]))
                    self._charge(100)
            if old is not None and new is not None and old[:2] == new[:2]:
                self._charge(100)

    def _between(self, table: str, asked: Mapping[str, Any], values: Mapping[str, Any]) -> Iterator[Row]:
        condition = asked["KeyConditionExpression"]
        pk = plain(values[condition.split()[2]])
        order, rows = self._order[table, pk], self._rows[table, pk]
        first, last = 0, len(order)
        if "BETWEEN" in condition:
            _, _, names = condition.partition(" BETWEEN ")
            low, high = (plain(values[name]) for name in names.split(" AND "))
            first, last = bisect_left(order, low), bisect_right(order, high)
        elif "begins_with" in condition:
            prefix = plain(values[":" + condition.rpartition(":")[2].rstrip(")")])
            first, last = bisect_left(order, prefix), bisect_left(order, prefix + "\uffff")
        if "ExclusiveStartKey" in asked:
            first = bisect_right(order, asked["ExclusiveStartKey"]["sk"]["S"])
        return (rows[sk] for sk in order[first:last])

    def _index(self, asked: Mapping[str, Any], values: Mapping[str, Any]) -> Iterator[Row]:
        index = INDEXES[asked["IndexName"]]
        partition, *bound = (plain(value) for value in values.values())
        entries = self._listed[asked["IndexName"], partition]
        entries = entries[: bisect_right(entries, (bound[0], "\uffff", ""))] if bound else entries
        kept = {"pk", "sk", index.partition, index.sort, *index.includes}
        for _, pk, sk in entries if asked["ScanIndexForward"] else reversed(entries):
            row = self._rows[asked["TableName"], pk][sk]
            yield {name: value for name, value in row.items() if name in kept}

    # charged units

    def _call(self, name: str) -> None:
        self._counts.add(f"DynamoDB {name}")

    def _read(self, size: int, *, strongly: bool) -> None:
        self._counts.add("read units", max(1, ceil(size / READ_BYTES)) * (1.0 if strongly else 0.5))

    def _charge(self, size: int, times: int = 1) -> None:
        self._counts.add("write units", times * max(1, ceil(size / WRITE_BYTES)))


def _allowed(action: Mapping[str, Any], row: Row | None) -> bool:
    return holds(action.get("ConditionExpression", ""), row, action.get("ExpressionAttributeValues", {}))


def _entry(index: Index, row: Row | None) -> tuple[Any, ...] | None:
    if row is None or index.partition not in row or index.sort not in row:
        return None
    return (row[index.partition], row[index.sort], *(row.get(name) for name in index.includes))


def _size(row: Row) -> int:
    """Return the size of names and values; a digit of a number takes about half a byte."""
    total = 0
    for name, value in row.items():
        ((kind, content),) = value.items()
        total += len(name) + (len(content) // 2 + 2 if kind == "N" else len(content))
    return total
