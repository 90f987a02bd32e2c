"""Answers over the wire that no stand-in gives."""

import json
from typing import NamedTuple

from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from moto.core.botocore_stubber import MockRawResponse


class Reply(NamedTuple):
    """An answer as it comes over the wire."""

    status: int
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = ()

    def to(self, url: str) -> AWSResponse:
        """Return it in the library's form."""
        return AWSResponse(url, self.status, HTTPHeaders.from_dict(dict(self.headers)), MockRawResponse(self.body))


def dynamodb_error(code: str, status: int = 400) -> Reply:
    return Reply(status, json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "x"}).encode())


def conflict(rows: int) -> Reply:
    """Another transaction is writing the last of these rows."""
    reasons = [{"Code": "None"}] * (rows - 1) + [{"Code": "TransactionConflict", "Message": "x"}]
    name = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException"
    return Reply(400, json.dumps({"__type": name, "Message": "x", "CancellationReasons": reasons}).encode())


def sqs_error(code: str, status: int = 400, message: str = "x") -> Reply:
    body = json.dumps({"__type": f"com.amazonaws.sqs#{code}", "message": message}).encode()
    return Reply(status, body, (("x-amzn-query-error", f"{code};Sender"),))


def s3_error(code: str, status: int = 503) -> Reply:
    return Reply(status, f"<Error><Code>{code}</Code><Message>x</Message></Error>".encode())
