"""The committed OpenAPI document is up to date and consistent."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloudpar_protocol import codec
from cloudpar_protocol.errors import REQUEST_ERRORS
from cloudpar_protocol.routes import ROUTES
from cloudpar_protocol_tools import openapi
from cloudpar_protocol_tools.samples import message_types

COMMITTED = Path(__file__).parents[2] / "docs" / "openapi.json"
METHOD_FIELDS = {"operationId", "tags", "summary", "description", "requestBody", "responses"}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi.document()


def test_the_committed_document_is_up_to_date() -> None:
    assert COMMITTED.read_text() == openapi.render(), "python -m cloudpar_protocol_tools.openapi > docs/openapi.json"


def test_the_document_is_openapi_3_1(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    assert {"title", "version"} <= set(document["info"])
    assert set(document) == {"openapi", "info", "servers", "security", "paths", "components"}
    assert document["components"]["securitySchemes"]["bearer"] == {"type": "http", "scheme": "bearer"}
    variables = document["servers"][0]["variables"]
    assert all("{" + name + "}" in document["servers"][0]["url"] and "default" in variables[name] for name in variables)


def test_every_route_is_an_operation_in_both_media(document: dict[str, Any]) -> None:
    assert list(document["paths"]) == [route.path for route in ROUTES]
    for route in ROUTES:
        assert set(document["paths"][route.path]) == {"post"}
        operation = document["paths"][route.path]["post"]
        assert set(operation) <= METHOD_FIELDS
        assert operation["operationId"] == route.name
        for body, kind in ((operation["requestBody"], route.request), (operation["responses"]["200"], route.reply)):
            assert set(body["content"]) == {codec.MSGPACK, codec.JSON}
            for media in body["content"].values():
                assert media["schema"] == {"$ref": f"#/components/schemas/{kind.__name__}"}


def test_every_error_is_described(document: dict[str, Any]) -> None:
    responses = document["components"]["responses"]
    for code, kind in REQUEST_ERRORS.items():
        assert f"`{code}`" in responses[str(kind.status)]["description"]
    for path in document["paths"].values():
        assert set(path["post"]["responses"]) == {"200", *responses}


def test_every_message_has_a_schema_and_every_reference_its_target(document: dict[str, Any]) -> None:
    assert set(document["components"]["schemas"]) == set(message_types())
    for reference in _references(document):
        target: Any = document
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]
        assert isinstance(target, dict)


def test_schemas_state_versions_limits_and_openness(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["StartTasks"]["properties"]["v"]["default"] == 1
    assert "v" not in schemas["StartTasks"]["required"]
    assert schemas["AwaitTasks"]["properties"]["packages"]["maxItems"] == 100
    assert schemas["InlineData"]["properties"]["items"]["items"]["contentEncoding"] == "base64"
    assert not any(schema.get("additionalProperties") is False for schema in schemas.values())


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref":
                yield inner
            elif key != "mapping":
                yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)
