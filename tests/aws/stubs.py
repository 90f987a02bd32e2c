"""Clients of AWS with scripted answers."""

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
    """Clients that reach no server, made once because they are slow to make."""
    return Clients("us-east-1", "http://127.0.0.1:9")


@contextmanager
def stubbed(client: Any) -> Iterator[Stubber]:
    """Script a client's answers; all of them must be used."""
    with Stubber(client) as stub:
        yield stub
        stub.assert_no_pending_responses()


def client_error(code: str, status: int = 400, operation: str = "Call") -> ClientError:
    metadata: Any = {"HTTPStatusCode": status}
    return ClientError({"Error": {"Code": code, "Message": code}, "ResponseMetadata": metadata}, operation)
