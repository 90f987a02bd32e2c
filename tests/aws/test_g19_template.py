"""The stack's template, which many people may read, contains no secret: AWS makes them, or the template names them.

Besides the known fields, every text of the template is checked as scanners for secrets do: 32 hexadecimal digits in
a row, or 32 characters of base64's alphabet with the entropy of random data, look like a token. Names and paths have
less entropy, since words repeat their letters. Only hashes of the functions' code may look so.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from math import log2
from typing import Any

import pytest

from .template import synthesized

Template = dict[str, Any]
REFERENCES = {"Ref", "Fn::GetAtt"}
TELLING = re.compile("TOKEN|SECRET|KEY|PASSWORD", re.IGNORECASE)
PARAMETER = re.compile(r"/cloudpar/\w+/[a-z-]+")
"""The name of a secret in the parameter store."""
_RUN = re.compile(r"[A-Za-z0-9+/_-]{32,}")
_HEX = re.compile(r"[0-9a-fA-F]{32}")
_MIXED_BITS = 4.5
"""Bits of entropy per character. The template's longest path has 4.43; 199 of 200 random tokens of 43 have more."""


def looks_like_a_token(text: str) -> bool:
    return any(_HEX.search(run) or _bits(run) > _MIXED_BITS for run in _RUN.findall(text))


def _bits(run: str) -> float:
    """Return Shannon's entropy per character."""
    return -sum(count / len(run) * log2(count / len(run)) for count in Counter(run).values())


def texts(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of the template that are no references, with their places."""
    match value:
        case dict():
            for name, inner in value.items():
                if name not in REFERENCES:
                    yield from texts(inner, f"{at}/{name}")
        case list():
            for number, inner in enumerate(value):
                yield from texts(inner, f"{at}/{number}")
        case str():
            yield at, value


def leaks(template: Template) -> Iterator[str]:
    """Yield the places of secrets in the template."""
    for at, text in texts(template):
        names_resource = "/DependsOn" in at and text in template["Resources"]
        if looks_like_a_token(text) and not at.endswith("/Properties/Code/S3Key") and not names_resource:
            yield at
    for name, parameter in template["Parameters"].items():
        if TELLING.search(name) and "Default" in parameter:
            yield f"/Parameters/{name}"
    for name, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::SecretsManager::Secret" and (
            "SecretString" in properties or "GenerateSecretString" not in properties
        ):
            yield f"/Resources/{name}"
        variables = properties.get("Environment", {}).get("Variables", {}) if "Lambda" in resource["Type"] else {}
        for variable, value in variables.items():
            if TELLING.search(variable) and not _names(value):
                yield f"/Resources/{name}/{variable}"


def _names(value: Any) -> bool:
    """Whether a value only names a secret."""
    match value:
        case {"Fn::Join": [_, parts]}:
            return all(_names(part) for part in parts if part not in [":", "/", "-", ""])
        case str():
            return PARAMETER.fullmatch(value) is not None
    return len(value) == 1 and not REFERENCES.isdisjoint(value)


def test_g19_the_template_contains_no_secret(reached: Callable[[str], None]) -> None:
    template = synthesized()
    kinds = Counter(resource["Type"] for resource in template["Resources"].values())
    assert kinds["AWS::SecretsManager::Secret"] == 1
    assert min(kinds["AWS::Lambda::Function"], kinds["AWS::EC2::LaunchTemplate"]) > 0
    assert list(leaks(template)) == []
    reached(f"{sum(1 for _ in texts(template))} texts of the template: 0 plaintexts")


def first(template: Template, kind: str) -> dict[str, Any]:
    """Return the properties of the first resource of this kind."""
    found: dict[str, Any] = next(each for each in template["Resources"].values() if each["Type"] == kind)["Properties"]
    return found


def in_a_secret(template: Template, text: str) -> None:
    first(template, "AWS::SecretsManager::Secret")["SecretString"] = text


def without_a_generator(template: Template, _: str) -> None:
    del first(template, "AWS::SecretsManager::Secret")["GenerateSecretString"]


def in_the_environment(template: Template, text: Any) -> None:
    first(template, "AWS::Lambda::Function")["Environment"]["Variables"]["CLOUDPAR_ADMIN_TOKEN"] = text


def joined_in_the_environment(template: Template, text: str) -> None:
    in_the_environment(template, {"Fn::Join": ["", [{"Ref": "AWS::Region"}, text]]})


def by_default(template: Template, text: str) -> None:
    template["Parameters"]["WorkerToken"] = {"Type": "String", "Default": text}


def under_an_innocent_name(template: Template, text: str) -> None:
    first(template, "AWS::Lambda::Function")["Environment"]["Variables"]["CLOUDPAR_POLICY"] = text


def in_the_user_data(template: Template, text: str) -> None:
    data = first(template, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]["UserData"]
    data["Fn::Base64"]["Fn::Join"][1].append(f"\nexport ANYTHING={text}\n")


def by_innocent_default(template: Template, text: str) -> None:
    template["Parameters"]["Worker"] = {"Type": "String", "Default": text}


def as_an_output(template: Template, text: str) -> None:
    template["Outputs"]["Worker"] = {"Value": text}


Plant = Callable[[Template, str], None]
BY_THE_PLACE: list[Plant] = [
    in_a_secret,
    without_a_generator,
    in_the_environment,
    joined_in_the_environment,
    by_default,
]
BY_THE_TEXT: list[Plant] = [under_an_innocent_name, in_the_user_data, by_innocent_default, as_an_output]
TOKENS = {
    "token_urlsafe(32)": "9xkQ2Zt7-mWbRf0LsVd4_JhYc8NuGpE3aTiOo6KqXwI",
    "token_hex(16)": "3f9a0c4be7d25186a1c07fe83b6d492e",
    "base64": "Zk3+vQ0mT7sLrX/1bWcP9dYh2NfGuJ8eRa5Ki6oVxEw=",
}


@pytest.mark.parametrize("plant", BY_THE_PLACE)
def test_g19_anything_planted_where_secrets_stand_is_found(plant: Plant) -> None:
    template = deepcopy(synthesized())
    plant(template, "short")
    assert len(list(leaks(template))) == 1


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
@pytest.mark.parametrize("plant", BY_THE_TEXT)
def test_g19_a_token_planted_anywhere_is_found(plant: Plant, token: str) -> None:
    template = deepcopy(synthesized())
    plant(template, token)
    assert len(list(leaks(template))) == 1
