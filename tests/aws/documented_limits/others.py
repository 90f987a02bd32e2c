"""Limits of S3 (key 1,024 bytes, 10,000 parts, 1,000 keys in a deletion), Systems Manager and STS."""

from collections.abc import Iterator

from .params import KIB, Params


def objects(name: str, params: Params) -> Iterator[str]:
    keys = [params["Key"]] if "Key" in params else [each["Key"] for each in params.get("Delete", {}).get("Objects", [])]
    yield from (f"a key of {len(key.encode()):,} bytes" for key in keys if not 1 <= len(key.encode()) <= 1024)
    if len(keys) > 1000:
        yield f"{name} of {len(keys):,} objects"
    if not 1 <= params.get("PartNumber", 1) <= 10_000:
        yield f"the part {params['PartNumber']}"


def parameters(_: str, params: Params) -> Iterator[str]:
    if len(params.get("Value", "").encode()) > 4 * KIB:
        yield "a standard parameter of over 4 KB"


def roles(name: str, params: Params) -> Iterator[str]:
    # A function's role is itself assumed, and AWS limits sessions of a role that assumes another one.
    if name == "AssumeRole" and params.get("DurationSeconds", 0) > 3600:
        yield "a session of over an hour"
