"""Probes for files of the user who runs the worker, and for files that later executors would run."""

import ctypes
import os
import socket
import tempfile
from typing import Any

import msgspec

from cloudpar_worker.executor import runner

from .probing import Clues, call, lists, opens, probe, read, reads

reads("the profile, with a user's token", "{home}/profile", open_otherwise=True)
reads("the worker token's file", "{home}/worker-token", open_otherwise=True)
reads("the master's data folder", "{home}/data/connection.json", open_otherwise=True)
lists("the home folder of the user who runs the worker", "{home}", open_otherwise=True)


@probe("a secret through a symbolic link in the task's own folder", open_otherwise=True)
def through_symbolic_link(clues: Clues) -> Any:
    link = tempfile.mkdtemp() + "/link"
    os.symlink(clues["home"] + "/profile", link)
    return read(link)


@probe("a secret through a hard link in the task's own folder", open_otherwise=True)
def through_hard_link(clues: Clues) -> Any:
    link = tempfile.mkdtemp() + "/link"
    os.link(clues["home"] + "/profile", link)
    return read(link)


@probe("a secret by its file handle, without passing through its folders")
def by_handle(clues: Clues) -> Any:
    handle = ctypes.create_string_buffer(b"\x80\0\0\0" + bytes(132))
    return call((303, 264), -100, (clues["home"] + "/profile").encode(), handle, ctypes.byref(ctypes.c_int()), 0) == 0


@probe("the names of files that others open in a closed folder, by inotify", open_otherwise=True)
def watch_names(clues: Clues) -> Any:
    return call((254, 27), call((294, 26), 0), clues["home"].encode(), 0x100) > 0


@probe("an instance of inotify, of which a user has few", open_otherwise=True)
def watcher(clues: Clues) -> Any:
    return call((294, 26), 0) > 0


@probe("a socket in the home folder of the user who runs the worker", open_otherwise=True)
def unix_socket(clues: Clues) -> Any:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(clues["home"] + "/socket")
        return True


reads("the passwords of the machine", "/etc/shadow")


@probe("changing the worker's code")
def installed_code(clues: Clues) -> Any:
    return open(runner.__file__, "ab")


@probe("a sitecustomize for later interpreters")
def customize(clues: Clues) -> Any:
    path = os.path.dirname(os.path.dirname(msgspec.__file__)) + "/probe-of-the-tests.py"
    with open(path, "x"):
        os.unlink(path)
        return True


opens("/etc/ld.so.preload for later programs", "/etc/ld.so.preload", "a")


@probe("a file in a folder that every user can write", open_otherwise=True)
def outside(clues: Clues) -> Any:
    path = f"{clues['open_to_all']}/probe-{os.getpid()}"
    with open(path, "x"):
        os.unlink(path)
        return True


opens("a file beside the task's own folder", "{tmp}/planted", "w", open_otherwise=True)


def locks(clues: Clues) -> str:
    """The lock folder is in the second place where the first is read-only."""
    places = ("/run/cloudpar-users", "/dev/shm/cloudpar-users")
    return places[not os.path.lexists(places[0]) and os.path.lexists(places[1])]


@probe("the locks on executors' users")
def take_users(clues: Clues) -> Any:
    return open(locks(clues) + "/users", "rb")


@probe("opening the folder of these locks")
def take_folder(clues: Clues) -> Any:
    return os.open(locks(clues), os.O_RDONLY | os.O_DIRECTORY)


@probe("replacing the folder of these locks")
def replace_users(clues: Clues) -> Any:
    os.rename(locks(clues), locks(clues) + "-of-the-tests")
    return "renamed"
