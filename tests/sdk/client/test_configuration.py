import errno
from pathlib import Path

import pytest

from cloudpar._client.configuration import Configuration, configure, profile_path
from cloudpar.errors import ConfigurationError

HOME = {"XDG_CONFIG_HOME": "/nowhere"}


def test_without_any_source_no_master_is_configured() -> None:
    assert configure(None, None, HOME) is None


def test_arguments_have_priority_over_the_environment() -> None:
    environment = {**HOME, "CLOUDPAR_ENDPOINT": "http://other", "CLOUDPAR_TOKEN": "other"}
    found = configure("http://here/", "mine", environment)
    assert found == Configuration("http://here", "mine", "the arguments endpoint= and token=")


def test_without_arguments_the_environment_decides() -> None:
    environment = {**HOME, "CLOUDPAR_ENDPOINT": "https://there", "CLOUDPAR_TOKEN": "secret"}
    found = configure(None, None, environment)
    assert found is not None
    assert (found.endpoint, found.token) == ("https://there", "secret")


def test_a_token_may_come_from_the_environment_alone() -> None:
    found = configure("http://here", None, {**HOME, "CLOUDPAR_TOKEN": "secret"})
    assert found is not None
    assert (found.endpoint, found.token) == ("http://here", "secret")


def test_in_a_task_its_pool_comes_after_the_environment_and_before_the_profile_file(tmp_path: Path) -> None:
    (tmp_path / "cloudpar").mkdir()
    (tmp_path / "cloudpar/profile.toml").write_text('endpoint = "http://there"\ntoken = "secret"\n')
    home = {"XDG_CONFIG_HOME": str(tmp_path)}
    of_task = Configuration("http://pool", "its own", "the pool that runs this task")
    assert configure(None, None, home, of_task=of_task) is of_task
    assert configure("local", None, home, of_task=of_task) is None
    other = {**home, "CLOUDPAR_ENDPOINT": "http://other", "CLOUDPAR_TOKEN": "other"}
    found = configure(None, None, other, of_task=of_task)
    assert found is not None
    assert found.endpoint == "http://other"


def test_the_profile_file_is_used_without_arguments_and_environment(tmp_path: Path) -> None:
    (tmp_path / "cloudpar").mkdir()
    (tmp_path / "cloudpar/profile.toml").write_text('endpoint = "http://there"\ntoken = "secret"\n')
    found = configure(None, None, {"XDG_CONFIG_HOME": str(tmp_path)})
    assert found is not None
    assert (found.endpoint, found.token) == ("http://there", "secret")


def test_cloudpar_profile_names_another_profile_file(tmp_path: Path) -> None:
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
def test_the_endpoint_local_ignores_a_configured_master(
    tmp_path: Path, endpoint: str | None, environment: dict[str, str]
) -> None:
    (tmp_path / "cloudpar").mkdir()
    (tmp_path / "cloudpar/profile.toml").write_text('endpoint = "http://there"\ntoken = "secret"\n')
    assert configure(endpoint, None, {"XDG_CONFIG_HOME": str(tmp_path), **environment}) is None


def test_without_xdg_config_home_the_profile_is_in_the_home_folder() -> None:
    assert profile_path({}) == Path.home() / ".config/cloudpar/profile.toml"


@pytest.mark.parametrize(
    ("endpoint", "token", "text"),
    [
        ("http://here", None, r"an? endpoint \(from the arguments.*but no token: give both"),
        (None, "secret", r"a token .* but no endpoint"),
        ("here:80", "secret", "must start with http:// or https://"),
    ],
)
def test_contradicting_configurations_are_refused(endpoint: str | None, token: str | None, text: str) -> None:
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
def test_a_malformed_profile_file_is_refused(tmp_path: Path, content: str, text: str) -> None:
    path = tmp_path / "profile.toml"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=text):
        configure(None, None, {**HOME, "CLOUDPAR_PROFILE": str(path)})


def test_a_profile_file_in_a_closed_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "profile.toml"

    def refuse(_: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", refuse)  # root may enter every folder
    with pytest.raises(ConfigurationError, match=r"the profile file .*profile\.toml cannot be read: .*Permission"):
        configure(None, None, {**HOME, "CLOUDPAR_PROFILE": str(path)})


def test_a_missing_profile_file_that_the_environment_names_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="which is no file"):
        configure(None, None, {**HOME, "CLOUDPAR_PROFILE": "/nowhere/x.toml"})
