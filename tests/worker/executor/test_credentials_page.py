"""The page through which tasks get AWS credentials."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cloudpar_protocol.worker_messages import TaskCredentials
from cloudpar_worker.executor.credentials_page import CONFIG, PAGE_BYTES, CredentialsPage, open_page, write
from cloudpar_worker.shell.task_credentials import RENEWED_S, CredentialStore

NOW = 1_800_000_000.0


def credentials(package_id: str = "p", expires_at: float = NOW, session: str = "first") -> TaskCredentials:
    return TaskCredentials(
        package_id=package_id, access_key_id="ASIAEXAMPLE", secret_access_key="secret", session_token=session,
        expires_at=expires_at, region="eu-central-1",
    )  # fmt: skip


@pytest.fixture
def page() -> Iterator[int]:
    descriptor = open_page()
    yield descriptor
    os.close(descriptor)


def test_a_page_has_the_form_that_aws_libraries_read_from_a_program(page: int) -> None:
    write(page, credentials(session="longer " * 20))
    write(page, credentials())
    assert json.loads(os.pread(page, PAGE_BYTES, 0)) == {
        "Version": 1, "AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": "secret", "SessionToken": "first",
        "Expiration": datetime.fromtimestamp(NOW, UTC).isoformat(),
    }  # fmt: skip


def test_credentials_that_are_larger_than_a_page_are_refused(page: int) -> None:
    with pytest.raises(ValueError, match="a page has 8192"):
        write(page, credentials(session="t" * PAGE_BYTES))


def test_a_page_can_neither_grow_nor_shrink(page: int) -> None:
    """Otherwise a task could take memory that counts for no executor."""
    for size in (0, PAGE_BYTES + 1):
        with pytest.raises(PermissionError):
            os.ftruncate(page, size)
    assert os.fstat(page).st_mode & 0o777 == 0o444


def test_the_libraries_are_offered_the_page_once(page: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_CONFIG_FILE", "before")
    offered = CredentialsPage(page)
    offered.offer("eu-central-1")
    assert os.environ["AWS_CONFIG_FILE"] == str(tmp_path / CONFIG)
    assert (tmp_path / CONFIG).read_text() == (
        f"[default]\ncredential_process = /bin/cat /proc/{os.getpid()}/fd/{page}\nregion = eu-central-1\n"
    )
    (tmp_path / CONFIG).unlink()  # as a task may do
    offered.offer("eu-central-1")
    assert not (tmp_path / CONFIG).exists()


def test_a_file_that_cannot_be_written_does_not_end_the_executor(
    page: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A task that changes its working folder has no effect; the disk may be full, or the folder removed."""
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    monkeypatch.setenv("AWS_CONFIG_FILE", "before")
    offered = CredentialsPage(page)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").rmdir()
    offered.offer("")
    assert os.environ["AWS_CONFIG_FILE"] == "before"
    assert "no AWS credentials for this task: [Errno 2]" in capsys.readouterr().err
    (tmp_path / "own").mkdir()
    offered.offer("")
    assert os.environ["AWS_CONFIG_FILE"] == str(tmp_path / "own" / CONFIG)
    assert "region" not in (tmp_path / "own" / CONFIG).read_text()


def test_no_text_of_credentials_shows_them() -> None:
    made = credentials(session="session-secret")
    for text in (repr(made), str(made), f"{[made]}", repr(made.__rich_repr__())):
        assert "secret" not in text
        assert "ASIA" not in text


def test_the_store_keeps_the_latest_credentials_of_each_package() -> None:
    store = CredentialStore()
    early, late, other = credentials(expires_at=1.0), credentials(expires_at=2.0), credentials("q")
    store.take([late, None, other])
    store.take([early])
    assert (store.of("p"), store.of("q"), store.of("unknown")) == (late, other, None)
    store.keep({"q"})
    assert (store.of("p"), store.of("q")) == (None, other)


def test_credentials_are_renewed_before_libraries_need_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudpar_worker.shell.task_credentials.time.time", lambda: NOW)
    store = CredentialStore()
    store.take([credentials("p", NOW + RENEWED_S), credentials("q", NOW + RENEWED_S - 1)])
    assert not store.expire_soon({"p"})
    assert store.expire_soon({"p", "q"})
    assert not store.expire_soon({"unknown"})
