import io
import zipfile
from pathlib import Path

import pytest

from cloudpar._serialization.project import archive as archives
from cloudpar._serialization.project.archive import archive, warn_of_secrets
from cloudpar._serialization.project.secret_files import PATTERNS, is_secret
from cloudpar._serialization.project.units import Unit

SECRET = [
    *("service_account.json", "my-service-account-prod.json", "client_secret.json", "client_secret_1234.apps.json"),
    *("aws_credentials.json", "Credentials.JSON", "credentials", "secrets.toml", "secret", "settings.local.toml"),
    *("config.local.yaml", "_netrc", "server.pem", "server.KEY", "AuthKey_12.p8", "store.jks", "id_rsa"),
    *("id_ed25519.bak", "prod.env", "prod.env.bak", "token.json", "github_token.txt", "api_key.txt"),
    *(
        "passwords.txt",
        "prod.tfvars",
        "deep/secrets/database.txt",
        "deep/credentials/prod.json",
        "kubeconfig",
        "backup.gpg",
    ),
]
ORDINARY = [
    *("tokenizer.json", "special_tokens_map.json", "keys.csv", "settings.toml", "local.csv", "environment.yml"),
    *("table.csv", "weights.bin", "template.html", "monkeys/data.json", "pemmican.txt", "secretary/staff.csv"),
]


@pytest.mark.parametrize("place", SECRET)
def test_a_name_of_a_secret_is_known(place: str) -> None:
    assert is_secret(place)


@pytest.mark.parametrize("place", ORDINARY)
def test_an_ordinary_name_is_no_secret(place: str) -> None:
    assert not is_secret(place)


def test_secrets_stay_here_with_one_warning_and_code_of_such_a_name_travels(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "_warned", set())
    kept = ["__init__.py", "secrets.py", "credentials.pyi", "secrets/__init__.py", *ORDINARY]
    for name in [*kept, *SECRET, ".netrc", ".env"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    unit = Unit("firm", str(tmp_path))
    for _ in range(2):
        made = archive(unit.files())
        warn_of_secrets([unit])
    places = zipfile.ZipFile(io.BytesIO(made)).namelist()
    assert {place.partition("/")[2] for place in places} == set(kept)
    (text,) = caplog.messages
    assert f"look like secrets do not travel with the project: {tmp_path}" in text
    assert f" and {len(SECRET) - 3} more. If" in text
    assert "give the task its content as an argument" in text


def test_the_guide_lists_every_pattern() -> None:
    guide = (Path(__file__).parents[4] / "docs" / "sdk.md").read_text()
    assert [pattern for pattern in PATTERNS if f"`{pattern}`" not in guide] == []
