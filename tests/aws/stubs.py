"""Answers of AWS that no stand-in gives."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber

from cloudpar_master.adapters.aws.clients import Clients

__all__ = ["ANY", "Stubber", "client_error", "offline", "stubbed"]


@cache
def offline() -> Clients:
    """Clients that reach nobody; one of each, since they are slow to make."""
    return Clients("us-east-1", "http://127.0.0.1:9")


@contextmanager
def stubbed(client: Any) -> Iterator[Stubber]:
    """A client whose answers are scripted, and all given."""
    with Stubber(client) as stub:
        yield stub
        stub.assert_no_pending_responses()


def client_error(code: str, status: int = 400, operation: str = "Call") -> ClientError:
    """An error as the library raises it."""
    metadata: Any = {"HTTPStatusCode": status}
    return ClientError({"Error": {"Code": code, "Message": code}, "ResponseMetadata": metadata}, operation)
