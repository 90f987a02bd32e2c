"""Objects: an object that the master may not read is not the same as one that does not exist."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from cloudpar_master.adapters.aws.objects import RETRY_S, Objects
from cloudpar_protocol.errors import Unavailable

from .stubs import offline, stubbed

KEY = "results/p/pages/3#w"
FOUND: Any = {"Contents": [{"Key": KEY}]}


def get() -> bytes | None:
    return Objects(lambda: offline().s3, "bucket").get(KEY)


def test_an_object_that_does_not_exist_is_missing() -> None:
    with stubbed(offline().s3) as stub:
        stub.add_client_error("get_object", "NoSuchKey", http_status_code=404)
        assert get() is None


@pytest.mark.parametrize("listed", [{}, {"Contents": [{"Key": f"{KEY}2"}]}])
def test_a_forbidden_object_that_the_bucket_does_not_list_is_missing(listed: Any) -> None:
    """S3 answers so for a missing key if the role may list only some prefixes."""
    with stubbed(offline().s3) as stub:
        stub.add_client_error("get_object", "AccessDenied", http_status_code=403)
        stub.add_response("list_objects_v2", listed, {"Bucket": "bucket", "Prefix": KEY, "MaxKeys": 1})
        assert get() is None


def test_a_forbidden_object_that_the_bucket_lists_is_requested_again_later() -> None:
    with stubbed(offline().s3) as stub:
        stub.add_client_error("get_object", "AccessDenied", http_status_code=403)
        stub.add_response("list_objects_v2", FOUND)
        with pytest.raises(Unavailable, match="check the bucket's policy") as raised:
            get()
    assert raised.value.retry_after_s == RETRY_S


def test_a_forbidden_object_in_a_bucket_that_may_not_be_listed_is_requested_again_later() -> None:
    with stubbed(offline().s3) as stub:
        stub.add_client_error("get_object", "AccessDenied", http_status_code=403)
        stub.add_client_error("list_objects_v2", "AccessDenied", http_status_code=403)
        with pytest.raises(Unavailable, match="whether it exists"):
            get()


def test_any_other_error_is_raised_as_it_is() -> None:
    for call in ("get_object", "list_objects_v2"):
        with stubbed(offline().s3) as stub:
            if call == "list_objects_v2":
                stub.add_client_error("get_object", "AccessDenied", http_status_code=403)
            stub.add_client_error(call, "NoSuchBucket", http_status_code=404)
            with pytest.raises(ClientError, match="NoSuchBucket"):
                get()
