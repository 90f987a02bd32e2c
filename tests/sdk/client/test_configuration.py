from pathlib import Path

import pytest

from cloudpar._client.configuration import Configuration, configure, profile_path
from cloudpar.errors import ConfigurationError

HOME = {"XDG_CONFIG_HOME": "/nowhere"}


def test_nobody_named_a_master() -> None:
    assert configure(None, None, HOME) is None


def test_arguments_come_first() -> None:
    environment = {**HOME, "CLOUDPAR_ENDPOINT": "http://other", "CLOUDPAR_TOKEN": "other"}
    found = configure("http://here/", "mine", environment)
    assert found == Configuration("http://here", "mine", "the arguments endpoint= and token=")


def test_then_the_environment() -> None:
    environment = {**HOME, "CLOUDPAR_ENDPOINT": "https://there", "CLOUDPAR_TOKEN": "secret"}
    found = configure(None, None, environment)
    assert found is not None
    assert (found.endpoint, found.token) == ("https://there", "secret")


def test_a_token_may_come_from_the_environment_alone() -> None:
    found = configure("http://here", None, {**HOME, "CLOUDPAR_TOKEN": "secret"})
    assert found is not None
    assert (found.endpoint, found.token) == ("http://here", "secret")


def test_then_the_profile_file(tmp_path: Path) -> None:
    (tmp_path / "cloudpar").mkdir()
    (tmp_path / "cloudpar/profile.toml").write_text('endpoint = "http://there"\ntoken = "secret"\n')
    found = configure(None, None, {"XDG_CONFIG_HOME": str(tmp_path)})
    assert found is not None
    assert (found.endpoint, found.token) == ("http://there", "secret")


def test_a_profile_file_by_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('endpoint = "http://there"\ntoken = "secret"\n')
    found = configure(None, None, {**HOME, "CLOUDPAR_PROFILE": str(path)})
    assert found is not None
    assert found.source == f"the profile file {path}"


@pytest.mark.parametrize(
    ("endpoint", "environment"),
    [
        ("local", {"CLOUDPAR_ENDPOINT": "http://there", "CLOUDPAR_TOKEN": "secret"}),
        (None, {"CLOUDPAR_ENDPOINT": "local", "CLOUDPAR_TOKEN": "secret"}),
        (None, {"CLOUDPAR_ENDPOINT": "local"}),
    ],
)
def test_this_machine_whatever_else_is_configured(
    tmp_path: Path, endpoint: str | None, environment: dict[str, str]
) -> None:
    (tmp_path / "cloudpar").mkdir()
    (tmp_path / "cloudpar/profile.toml").write_text('endpoint = "http://there"\ntoken = "secret"\n')
    assert configure(endpoint, None, {"XDG_CONFIG_HOME": str(tmp_path), **environment}) is None


def test_profile_without_xdg() -> None:
    assert profile_path({}) == Path.home() / ".config/cloudpar/profile.toml"


@pytest.mark.parametrize(
    ("endpoint", "token", "text"),
    [
        ("http://here", None, r"an? endpoint \(from the arguments.*but no token: give both"),
        (None, "secret", r"a token .* but no endpoint"),
        ("here:80", "secret", "begins with http:// or https://"),
    ],
)
def test_what_does_not_fit(endpoint: str | None, token: str | None, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        configure(endpoint, token, HOME)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("endpoint = ", "cannot be read"),
        ("endpoint = 5\ntoken = 'x'", "endpoint in the profile file .* is no string"),
        ("endpoint = 'http://x'", "no token"),
        ("endpont = 'http://x'", "profile.toml has the key 'endpont', .*: did you mean endpoint\\?"),
        ("ENDPOINT = 'http://x'\ntoken = 'x'", "the key 'ENDPOINT', .*: did you mean endpoint\\?"),
        ("endpoint = 'http://x'\ntoken = 'x'\nworkers = 4", "the key 'workers', .*: remove it"),
        ("[pool]\nendpoint = 'http://x'", "the key 'pool', .*: remove it"),
    ],
)
def test_broken_profile(tmp_path: Path, content: str, text: str) -> None:
    path = tmp_path / "profile.toml"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=text):
        configure(None, None, {**HOME, "CLOUDPAR_PROFILE": str(path)})


def test_missing_named_profile() -> None:
    with pytest.raises(ConfigurationError, match="which is no file"):
        configure(None, None, {**HOME, "CLOUDPAR_PROFILE": "/nowhere/x.toml"})
