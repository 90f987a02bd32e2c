import pytest

from cloudpar_master.core.policy import Policy
from cloudpar_master.server.startup_config import StartupConfig, parse


def test_a_line_with_all_fields_is_read() -> None:
    line = b'{"user_token": "u", "worker_token": "w", "admin_token": "a", "settings": {"lease_s": 2.5}}\n'
    assert parse(line) == StartupConfig(user_token="u", worker_token="w", admin_token="a", settings=Policy(lease_s=2.5))


def test_every_field_of_a_startup_config_is_optional() -> None:
    assert parse(b"{}") == StartupConfig()


@pytest.mark.parametrize(
    ("line", "named"),
    [(b"", "truncated"), (b"[]", "object"), (b"{", "truncated"), (b'{"token": "u"}', "token"),
     (b'{"settings": {"lease": 2}}', "lease"), (b'{"settings": {"lease_s": "2"}}', "lease_s"), (b"\xff\n", "standard"),
     (b'{"settings": {"requests_per_s": 0}}', "requests_per_s"), (b'{"settings": {"lease_s": -1}}', "lease_s"),
     (b'{"settings": {"running_packages": 0}}', "running_packages"),
     (b'{"settings": {"request_burst": 0}}', "request_burst"), (b'{"settings": {"kept_bytes": -1}}', "kept_bytes")],
)  # fmt: skip
def test_an_error_in_a_startup_config_names_the_field(line: bytes, named: str) -> None:
    with pytest.raises(ValueError, match=named) as caught:
        parse(line)
    assert "$.settings" not in str(caught.value)
