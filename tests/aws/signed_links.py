"""What S3 checks before it carries out a request by a link, implemented from AWS's description of signatures.

No stand-in for Python, Node or Java checks all of it, so this stands before moto. test_g20_links.py compares it with
AWS's own example, and `make versitygw` runs the tests of links on a server that checks signatures itself.
"""

import base64
import hashlib
import hmac
import io
import time
import zlib
from calendar import timegm
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

SECRETS = {"test": "test"}
"""Secret keys by access key."""

EARLY_S = 900
SIGNATURE = "X-Amz-Signature"

Environment = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], Any]
Application = Callable[[Environment, StartResponse], Iterable[bytes]]


class Refusal(Exception):
    """A request that S3 refuses, with S3's error code and the status."""

    def __init__(self, code: str, status: int = 403) -> None:
        super().__init__(code)
        self.code, self.status = code, status


class Request(NamedTuple):
    """A request; header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


def check(request: Request, now: float, secrets: Mapping[str, str] = SECRETS) -> None:
    """Check that a request is one that its link was made for.

    Raises:
        Refusal: It is another request, the link has expired, or the body is another one.
    """
    query = parse_qsl(urlsplit(request.target).query, keep_blank_values=True)
    signature = dict(query).get(SIGNATURE)
    if signature is None:
        raise Refusal("AccessDenied")
    try:
        _check_signature(request, query, signature, secrets)
        _check_time(dict(query), now)
    except (KeyError, ValueError):
        raise Refusal("AuthorizationQueryParametersError", 400) from None
    _check_body(request)


def _check_signature(
    request: Request, query: list[tuple[str, str]], signature: str, secrets: Mapping[str, str]
) -> None:
    given = dict(query)
    key_id, date, region, service, end = given["X-Amz-Credential"].split("/")
    if (given["X-Amz-Algorithm"], service, end) != ("AWS4-HMAC-SHA256", "s3", "aws4_request"):
        raise ValueError
    if key_id not in secrets:
        raise Refusal("InvalidAccessKeyId")
    signed = given["X-Amz-SignedHeaders"].split(";")
    if "host" not in signed or any(name.startswith("x-amz-") and name not in signed for name in request.headers):
        raise Refusal("AccessDenied")
    canonical = [
        request.method,
        quote(unquote(urlsplit(request.target).path), safe="/-_.~"),
        "&".join(sorted(f"{_quote(name)}={_quote(value)}" for name, value in query if name != SIGNATURE)),
        *(f"{name}:{' '.join(request.headers.get(name, '').split())}" for name in signed),
        "",
        given["X-Amz-SignedHeaders"],
        "UNSIGNED-PAYLOAD",
    ]
    hashed = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    scope = f"{date}/{region}/{service}/{end}"
    to_sign = "\n".join((given["X-Amz-Algorithm"], given["X-Amz-Date"], scope, hashed))
    key = f"AWS4{secrets[key_id]}".encode()
    for part in (date, region, service, end):
        key = hmac.digest(key, part.encode(), "sha256")
    if not given["X-Amz-Date"].startswith(date) or not hmac.compare_digest(
        hmac.digest(key, to_sign.encode(), "sha256").hex(), signature
    ):
        raise Refusal("SignatureDoesNotMatch")


def _check_time(given: Mapping[str, str], now: float) -> None:
    made = timegm(time.strptime(given["X-Amz-Date"], "%Y%m%dT%H%M%SZ"))
    if not made - EARLY_S <= now <= made + int(given["X-Amz-Expires"]):
        raise Refusal("AccessDenied")


def _check_body(request: Request) -> None:
    checksum = request.headers.get("x-amz-checksum-crc32")
    whole = base64.b64encode(zlib.crc32(request.body).to_bytes(4)).decode()
    if request.method == "PUT" and checksum not in {None, whole}:
        raise Refusal("BadDigest", 400)


def _quote(text: str) -> str:
    return quote(text, safe="-_.~")


class Checked:
    """A WSGI application behind this check. Calls that are signed by headers are not checked."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self.now = time.time

    def __call__(self, environment: Environment, start_response: StartResponse) -> Iterable[bytes]:
        if "HTTP_AUTHORIZATION" in environment:
            return self._application(environment, start_response)
        body = environment["wsgi.input"].read(int(environment.get("CONTENT_LENGTH") or 0))
        try:
            check(_request(environment, body), self.now())
        except Refusal as refusal:
            start_response(f"{refusal.status} Refused", [("Content-Type", "application/xml"), ("Connection", "close")])
            return [f"<Error><Code>{refusal.code}</Code></Error>".encode()]
        environment["wsgi.input"] = io.BytesIO(body)
        return self._application(environment, start_response)


def _request(environment: Environment, body: bytes) -> Request:
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): value
        for name, value in environment.items()
        if name.startswith("HTTP_")
    }
    if "CONTENT_LENGTH" in environment:
        headers["content-length"] = environment["CONTENT_LENGTH"]
    return Request(environment["REQUEST_METHOD"], environment["RAW_URI"], headers, body)
