import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from botocore.exceptions import ClientError

from . import errors, rows
from .backoff import attempts, batches
from .rows import Row

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

GET_BATCH, WRITE_BATCH = 100, 25
CONDITION_FAILED = "ConditionalCheckFailed"
MISSING, THERE = "attribute_not_exists(pk)", "attribute_exists(pk)"


class Refused(NamedTuple):
    """A write whose condition did not hold. `row` is the stored row; None if there is no row with this key."""

    row: Row | None


class Change(NamedTuple):
    """One write, or a check in a transaction. A change may depend on a condition.

    Attributes:
        row: The row to put; for other kinds of change, the key of the row.
        update: The expression that says what an Update changes; None for other kinds of change.
    """

    row: Mapping[str, Any]
    condition: str
    values: Mapping[str, Any]
    kind: Literal["Put", "Update", "Delete", "ConditionCheck"] = "Put"
    update: str | None = None


def put(row: Mapping[str, Any], condition: str = "", **values: Any) -> Change:
    """Make a change that writes a whole row if the condition holds for the stored row.

    In the condition, `:name` stands for the value of that name.
    """
    return Change(row, condition, values)


def update(key: tuple[str, str], expression: str, condition: str, **values: Any) -> Change:
    """Make a change of some attributes of a row if the condition holds for the stored row.

    `:name` stands for the value of that name, and `#name` for an attribute whose name is one of DynamoDB's reserved
    words.
    """
    return Change({"pk": key[0], "sk": key[1]}, condition, values, "Update", expression)


def remove(key: tuple[str, str], condition: str = "", **values: Any) -> Change:
    """Make a change that removes a row if the condition holds for the row. Only `transact` accepts such a change."""
    return Change({"pk": key[0], "sk": key[1]}, condition, values, "Delete")


def check(key: tuple[str, str], condition: str, **values: Any) -> Change:
    """Make a change that writes nothing: the transaction fails if the condition does not hold for the row."""
    return Change({"pk": key[0], "sk": key[1]}, condition, values, "ConditionCheck")


class Table:
    """One table, whose rows have the keys pk and sk.

    If AWS is too busy to carry out a part of the work, `get_many`, `write`, `transact` and `delete` repeat this part.
    If AWS is too busy, fails or does not answer at the last attempt either, all calls except `scan_part` raise
    Unavailable: the caller may try again. If AWS refuses a call for a different reason, and in `scan_part` in any case,
    the call raises ClientError or BotoCoreError.
    """

    def __init__(self, client: "DynamoDBClient", name: str) -> None:
        self._client = client
        self._name = name

    def get(self, pk: str, sk: str) -> Row | None:
        """Read one row. The read sees every completed write."""
        key = rows.encode({"pk": pk, "sk": sk})
        with errors.translated():
            reply = self._client.get_item(TableName=self._name, Key=key, ConsistentRead=True)
        item = reply.get("Item")
        return None if item is None else rows.decode(item)

    def get_many(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Row]:
        """Read the rows with these keys. A key without a row is left out. The read sees every completed write."""
        found: dict[tuple[str, str], Row] = {}
        for batch in batches(list(dict.fromkeys(keys)), GET_BATCH):
            wanted: Any = {
                self._name: {"Keys": [rows.encode({"pk": pk, "sk": sk}) for pk, sk in batch], "ConsistentRead": True}
            }
            for _ in attempts():
                with errors.translated():
                    reply = self._client.batch_get_item(RequestItems=wanted)
                for row in map(rows.decode, reply["Responses"].get(self._name, [])):
                    found[row["pk"], row["sk"]] = row
                wanted = reply.get("UnprocessedKeys")
                if not wanted:
                    break
            else:
                raise errors.busy(self._name)
        return found

    def query(self, condition: str, values: Mapping[str, Any], *, index: str | None = None, keys_only: bool = False,
              limit: int | None = None, descending: bool = False) -> Iterator[Row]:  # fmt: skip
        """Yield the rows whose keys meet a condition, in order, and read them as the caller iterates.

        A read of the table sees every completed write; an index may lag behind.

        Args:
            condition: The condition, in DynamoDB's language. In it, `:name` stands for the value of that name.
            values: The values by name.
            index: The index to read; None: the table itself.
            keys_only: Whether to read only the keys of a table's rows, and the names of their objects in the bucket. A
                query of an index always reads all attributes that the index has.
            limit: The most rows to yield; None: all.
            descending: Whether the last row comes first.
        """
        options: dict[str, Any] = {
            "TableName": self._name,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": _named(values),
            "ScanIndexForward": not descending,
        }
        options |= {"IndexName": index} if index else {"ConsistentRead": True}
        if keys_only and not index:
            # `object` is one of DynamoDB's reserved words.
            options |= {"ProjectionExpression": "pk, sk, #object", "ExpressionAttributeNames": {"#object": "object"}}
        yield from self._all(self._client.query, options, limit)

    def scan(self, index: str) -> Iterator[Row]:
        """Yield every row of an index."""
        yield from self._all(self._client.scan, {"TableName": self._name, "IndexName": index}, None)

    def scan_part(self, condition: str, values: Mapping[str, Any], attributes: Sequence[str], *, pages: int,
                  after: tuple[str, str] | None) -> tuple[list[Row], tuple[str, str] | None]:  # fmt: skip
        """Read some pages of the table, of 1 MB each, and return their rows that meet a condition.

        The rows have only these attributes. The read may miss writes of the last seconds.

        Args:
            condition: The condition, in DynamoDB's language. In it, `:name` stands for the value of that name.
            values: The values by name.
            attributes: The names of the attributes to return. None of them is one of DynamoDB's reserved words.
            pages: How many pages to read at most.
            after: The key at which an earlier call stopped; None: start with the first page.

        Returns:
            The rows, and the key at which this call stopped; None: it read the last page.
        """
        options: dict[str, Any] = {
            "TableName": self._name,
            "FilterExpression": condition,
            "ExpressionAttributeValues": _named(values),
            "ProjectionExpression": ", ".join(attributes),
        }
        found: list[Row] = []
        for _ in range(pages):
            start: dict[str, Any] = (
                {} if after is None else {"ExclusiveStartKey": rows.encode({"pk": after[0], "sk": after[1]})}
            )
            with errors.translated():
                reply = self._client.scan(**options, **start)
            found += map(rows.decode, reply["Items"])
            last = rows.decode(reply.get("LastEvaluatedKey", {}))
            after = (last["pk"], last["sk"]) if last else None
            if after is None:
                break
        return found, after

    @staticmethod
    def _all(call: Any, options: dict[str, Any], limit: int | None) -> Iterator[Row]:
        while True:
            with errors.translated():
                reply = call(**options, **({"Limit": limit} if limit else {}))
            for item in reply["Items"]:
                yield rows.decode(item)
            if limit is not None:
                limit -= len(reply["Items"])
            if "LastEvaluatedKey" not in reply or limit == 0:
                return
            options["ExclusiveStartKey"] = reply["LastEvaluatedKey"]

    def write(self, change: Change, *, patient: bool = True) -> Refused | None:
        """Make one change if its condition holds. Returns None if the change was made, otherwise the refusal.

        Raises:
            Conflict: A transaction is writing the row, and the caller is not `patient`.
        """
        action: Any = self._action(change)
        call = self._client.update_item if change.kind == "Update" else self._client.put_item
        for _ in attempts():
            with errors.translated():
                try:
                    call(**action)
                except ClientError as error:
                    name = errors.code(error)
                    if name == "ConditionalCheckFailedException":
                        return Refused(_row(error.response))
                    if name != "TransactionConflictException":
                        raise
                    if not patient:
                        raise errors.Conflict from None
                else:
                    return None
        raise errors.busy(self._name)

    def transact(self, changes: Sequence[Change], *, patient: bool = True) -> list[Refused | None] | None:
        """Make all changes or none. Returns None if they were made.

        If a condition does not hold, returns a list with an entry for each change: its refusal, or None if this change
        was not the reason.

        Raises:
            Conflict: Another process is writing one of the rows, and the caller is not `patient`.
        """
        items: Any = [{change.kind: self._action(change)} for change in changes]
        for _ in attempts():
            try:
                with errors.translated():
                    self._client.transact_write_items(TransactItems=items)
            except self._client.exceptions.TransactionCanceledException as error:
                reasons: Any = error.response.get("CancellationReasons", [])
                names = {reason.get("Code") for reason in reasons}
                if CONDITION_FAILED in names:
                    return [Refused(_row(r)) if r.get("Code") == CONDITION_FAILED else None for r in reasons]
                if not names & errors.BUSY:
                    raise
                if not patient and "TransactionConflict" in names:
                    raise errors.Conflict from None
            else:
                return None
        raise errors.busy(self._name)

    def delete(self, keys: Sequence[tuple[str, str]]) -> None:
        """Remove rows. A row that does not exist counts as removed."""
        # DynamoDB refuses a batch that names a key twice.
        requests = [{"DeleteRequest": {"Key": rows.encode({"pk": pk, "sk": sk})}} for pk, sk in dict.fromkeys(keys)]
        for batch in batches(requests, WRITE_BATCH):
            pending: Any = {self._name: list(batch)}
            for _ in attempts():
                with errors.translated():
                    pending = self._client.batch_write_item(RequestItems=pending).get("UnprocessedItems")
                if not pending:
                    break
            else:
                raise errors.busy(self._name)

    def _action(self, change: Change) -> dict[str, Any]:
        action: dict[str, Any] = {"TableName": self._name}
        if change.condition:
            # A refusal then contains the stored row. From this row callers see whether an earlier attempt of the same
            # write, whose answer was lost, has succeeded. A later read could already show another process's write.
            action |= {
                "ConditionExpression": change.condition,
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        action["Item" if change.kind == "Put" else "Key"] = rows.encode(change.row)
        if change.update is not None:
            action["UpdateExpression"] = change.update
        names = re.findall(r"#(\w+)", f"{change.condition} {change.update}")
        if names:
            action["ExpressionAttributeNames"] = {f"#{name}": name for name in names}
        if change.values:
            action["ExpressionAttributeValues"] = _named(change.values)
        return action


def _row(answer: Mapping[str, Any]) -> Row | None:
    item = answer.get("Item")
    return rows.decode(item) if item else None


def _named(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values, and name them as expressions do: with a colon."""
    return rows.encode({f":{name}": value for name, value in values.items()})
