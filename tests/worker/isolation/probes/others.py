"""Probes for another account's executor and what it leaves behind."""

import ctypes
import os
import tempfile
from typing import Any

from .probing import Clues, call, probe, read


@probe("/proc/<other executor>/environ", open_otherwise=True)
def other_environment(clues: Clues) -> Any:
    return read(f"/proc/{clues['other']}/environ")


@probe("/proc/<other executor>/mem")
def other_memory(clues: Clues) -> Any:
    return open(f"/proc/{clues['other']}/mem", "rb")


@probe("/proc/<other executor>/fd, with its channel and output", open_otherwise=True)
def other_descriptors(clues: Clues) -> Any:
    return os.listdir(f"/proc/{clues['other']}/fd")


@probe("/proc/<other executor>/cwd", open_otherwise=True)
def other_working_folder(clues: Clues) -> Any:
    return os.listdir(f"/proc/{clues['other']}/cwd/")


@probe("process_vm_readv of another executor")
def read_other(clues: Clues) -> Any:
    buffer = ctypes.create_string_buffer(8)
    span = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    return call((310, 270), clues["other"], span, 1, span, 1, 0) or True


@probe("another account's temporary folder", open_otherwise=True)
def other_folder(clues: Clues) -> Any:
    return os.listdir(clues["other_folder"])


@probe("another account's temporary file", open_otherwise=True)
def other_file(clues: Clues) -> Any:
    return read(clues["other_file"])


@probe("another account's shared memory", open_otherwise=True)
def other_shared(clues: Clues) -> Any:
    return read(clues["other_shared"])


@probe("writing into another account's temporary folder", open_otherwise=True)
def write_other(clues: Clues) -> Any:
    return open(clues["other_folder"] + "/planted", "w")


@probe("the names of other executors' temporary folders", open_otherwise=True)
def other_folders(clues: Clues) -> Any:
    own = tempfile.gettempdir()
    if own == clues["tmp"]:
        return os.listdir(own)
    return [
        name for name in os.listdir(os.path.dirname(own)) if not own.endswith(name) and os.listdir(f"{own}/../{name}")
    ]
