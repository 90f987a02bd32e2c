"""The service quotas of DynamoDB: item 400 KB, partition key 2,048 bytes, sort key 1,024 bytes, expression 4 KB and 300
operators, transaction 4 MB, batch 16 MB. The models have the numbers of items."""

import re
from collections import Counter
from collections.abc import Iterator

from .params import KIB, MIB, Params

KEYS = {"pk": 2048, "sk": 1024}
"""The largest sizes of the attributes of our keys, in bytes."""

OPERATOR = re.compile(r"[=<>+,(-]| AND | OR ")


def broken(name: str, params: Params) -> Iterator[str]:
    """Yield the limits that a request breaks."""
    match name:
        case "TransactWriteItems":
            parts = [pair for item in params["TransactItems"] for pair in item.items()]
            yield from _transaction([part for _, part in parts])
        case "BatchWriteItem":
            parts = [pair for table in params["RequestItems"].values() for each in table for pair in each.items()]
            if sum(_item_size(part.get("Item", {})) for _, part in parts) > 16 * MIB:
                yield "a batch of over 16 MB"
        case _:
            parts = [(name, params)]
    for kind, part in parts:
        yield from (f"{kind} of {text}" for text in (*_row(part), *_expressions(part)))


def _transaction(parts: list[Params]) -> Iterator[str]:
    if sum(_item_size(part.get("Item", {})) for part in parts) > 4 * MIB:
        yield "a transaction of over 4 MB"
    rows = Counter((part["TableName"], str(_key(part))) for part in parts)
    yield from (f"{row} twice in a transaction" for row, times in rows.items() if times > 1)


def _row(part: Params) -> Iterator[str]:
    if (size := _item_size(part.get("Item", {}))) > 400 * KIB:
        yield f"an item of {size:,} bytes"
    for name, value in _key(part).items():
        if not 1 <= _size(value) <= KEYS[name]:
            yield f"a row whose {name} has {_size(value):,} bytes"


def _key(part: Params) -> Params:
    given = part.get("Key") or part.get("Item") or {}
    return {name: given[name] for name in KEYS if name in given}


def _expressions(part: Params) -> Iterator[str]:
    expressions = [value for field, value in part.items() if field.endswith("Expression")]
    for text in expressions:
        if len(text.encode()) > 4 * KIB or len(OPERATOR.findall(text)) > 300:
            yield f"an expression of {len(text):,} characters"
    for field in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
        for name in part.get(field, {}):
            if not re.search(rf"{re.escape(name)}\b", " ".join(expressions)):
                yield f"an expression without {name}, which is given"


def _item_size(item: Params) -> int:
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def _size(value: Params) -> int:
    """Return the bytes for which DynamoDB counts an attribute's value, such as {"S": "text"}."""
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return len(content) // 2 + 1
        case "B":
            return len(content)
        case "M":
            return 3 + len(content) + _item_size(content)
        case "L":
            return 3 + sum(1 + _size(inner) for inner in content)
    return 1
