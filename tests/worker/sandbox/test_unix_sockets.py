"""Sockets of other programs to which a task could connect."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cloudpar_worker.sandbox import landlock, unix_sockets
from cloudpar_worker.sandbox.unix_sockets import ENTRIES, reachable

HEAD = "Num       RefCount Protocol Flags    Type St Inode Path\n"
LISTENS, CONNECTED = "00000002 00000000 00010000 0001 01", "00000003 00000000 00000000 0001 03"
DATAGRAM = "00000002 00000000 00000000 0002 01"


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as held:
        yield held


def listen(held: ExitStack, path: Path, mode: int = 0o777) -> str:
    listening = held.enter_context(socket.socket(socket.AF_UNIX))
    listening.bind(str(path))
    listening.listen()
    path.chmod(mode)
    return str(path)


def made(folder: Path, mode: int = 0o755) -> Path:
    folder.mkdir()
    folder.chmod(mode)
    return folder


@pytest.mark.parametrize("searched", [True, False], ids=["in a place", "in the kernel's list"])
def test_sockets_that_every_user_may_use_are_found(folder: Path, held: ExitStack, searched: bool) -> None:
    top = made(folder / f"searched-{searched}")
    expected = [listen(held, made(top / "below") / "bus"), listen(held, top / "open")]
    listen(held, top / "of-a-group", 0o770)
    listen(held, top / "read-only", 0o755)
    listen(held, made(top / "closed", 0o700) / "socket")
    (top / "file").touch(0o666)
    found = (
        reachable(abstract=False, places=[str(top)], listed="/none")
        if searched
        else reachable(abstract=False, places=[])
    )
    assert [name for name in found if name.startswith(str(top))] == expected


def test_files_that_vanish_during_the_search_hide_no_socket(
    folder: Path, held: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search has listed the whole folder before it examines the first file. Then all other files are removed."""
    top, accepts_all = made(folder / "changing"), unix_sockets._accepts_all
    found = listen(held, top / "open")
    for number in range(20):
        (top / f"file {number}").touch()

    def last(mode: int) -> bool:
        for path in top.glob("file *"):
            path.unlink()
        return accepts_all(mode)

    monkeypatch.setattr(unix_sockets, "_accepts_all", last)
    assert reachable(abstract=False, places=[str(top)], listed="/none") == [found]


def test_a_place_that_others_may_not_enter_is_not_searched(folder: Path, held: ExitStack) -> None:
    closed = made(folder / "closed", 0o700)
    listen(held, made(closed / "inner") / "socket")
    assert reachable(abstract=False, places=[str(closed), str(closed / "inner")], listed="/none") == []


def test_only_sockets_that_take_connections_or_datagrams_are_found(tmp_path: Path) -> None:
    listed = tmp_path / "unix"
    lines = [f"0000: {LISTENS} 17 @bus", f"0000: {CONNECTED} 18 @bus", f"0000: {DATAGRAM} 19 @log file",
             f"0000: {CONNECTED} 20", f"0000: {LISTENS} 21 /no/such/socket"]  # fmt: skip
    listed.write_text(HEAD + "\n".join(lines) + "\n")
    assert reachable(abstract=True, places=[], listed=str(listed)) == ["@bus", "@log file"]
    assert reachable(abstract=False, places=[], listed=str(listed)) == []


def test_names_cannot_break_the_list_or_the_terminal(tmp_path: Path) -> None:
    """Anyone may give a socket any name, and the kernel lists it as it is."""
    listed = tmp_path / "unix"
    lines = [f"0000: {LISTENS} 17 @split\n0 0 0 zz 0 0 0 0", f"0000: {LISTENS} 18 @\x1b[2J\udcff\x85"]
    listed.write_text(HEAD + "\n".join(lines) + "\n", errors="surrogateescape")
    assert reachable(abstract=True, places=[], listed=str(listed)) == ["@?[2J??", "@split"]


def test_a_large_place_is_searched_only_in_part(folder: Path, held: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    large = made(folder / "large")
    for number in range(5):
        listen(held, large / str(number))
    assert ENTRIES >= 1_000
    monkeypatch.setattr("cloudpar_worker.sandbox.unix_sockets.ENTRIES", 3)
    assert len(reachable(abstract=False, places=[str(large)], listed="/none")) == 3


def test_connecting_is_a_right_only_where_the_kernel_knows_it() -> None:
    """The kernel refuses all rules if one has a right that it does not know."""
    resolve_unix = 1 << 16
    assert [bool(landlock.all_rights(number) & resolve_unix) for number in (1, 4, 5, 8, 9, 10)] == [False] * 4 + [
        True
    ] * 2
    assert landlock.all_rights(8) == resolve_unix - 1
    assert landlock.all_rights(9) == 2 * resolve_unix - 1
