"""Damages stored records of packages, on every adapter, as a failing disk or a program with an error does."""

from typing import Any, Literal

from cloudpar_master.adapters.aws.package_store import DynamoPackageStore
from cloudpar_master.adapters.embedded.package_store import SqlitePackageStore
from cloudpar_master.ports import PackageStore

Record = Literal["head", "spec", "page", "event"]

NEVER = b"\xc1"
"""A byte that no MessagePack message and no compressed one starts with."""


def damage(packages: PackageStore, package_id: str, record: Record) -> None:
    """Flip a bit of a package's head, or replace the first byte of its spec, or of all its pages or events."""
    assert isinstance(packages, SqlitePackageStore | DynamoPackageStore)
    if isinstance(packages, SqlitePackageStore):
        _in_sqlite(packages._db, package_id, record)
    else:
        _in_dynamodb(packages._table, package_id, record)
    packages._cache.clear()


def _damaged(body: bytes, record: Record) -> bytes:
    if record == "head":
        at = len(body) // 2
        return body[:at] + bytes([body[at] ^ 4]) + body[at + 1 :]
    return NEVER + body[1:]


def _in_sqlite(database: Any, package_id: str, record: Record) -> None:
    select, update = {
        "head": ("SELECT rowid, head FROM packages", "UPDATE packages SET head = ?"),
        "spec": ("SELECT rowid, spec FROM specs", "UPDATE specs SET spec = ?"),
        "page": ("SELECT rowid, results FROM pages", "UPDATE pages SET results = ?"),
        "event": ("SELECT rowid, event FROM inbox", "UPDATE inbox SET event = ?"),
    }[record]
    found = database.execute(f"{select} WHERE package_id = ?", (package_id,)).fetchall()
    assert found
    for number, body in found:
        database.execute(f"{update} WHERE rowid = ?", (_damaged(body, record), number))


def _in_dynamodb(table: Any, package_id: str, record: Record) -> None:
    start, attribute = {"head": ("head", "head"), "spec": ("spec", "spec"), "page": ("r#", "results"),
                        "event": ("i#", "event")}[record]  # fmt: skip
    values = {":pk": {"S": package_id}, ":start": {"S": start}}
    condition = "pk = :pk AND begins_with(sk, :start)"
    found = table._client.query(
        TableName=table._name, KeyConditionExpression=condition, ExpressionAttributeValues=values
    )["Items"]
    assert found
    for item in found:
        item[attribute] = {"B": _damaged(item[attribute]["B"], record)}
        table._client.put_item(TableName=table._name, Item=item)
