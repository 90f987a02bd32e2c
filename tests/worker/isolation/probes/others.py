"""Probes for another account's executor and what it leaves behind."""

import ctypes
import os
import tempfile
from typing import Any

from .probing import Clues, call, lists, opens, probe, reads

reads("/proc/<other executor>/environ", "/proc/{other}/environ", open_otherwise=True)
opens("/proc/<other executor>/mem", "/proc/{other}/mem", "rb")
lists("/proc/<other executor>/fd, with its channel and output", "/proc/{other}/fd", open_otherwise=True)
lists("/proc/<other executor>/cwd", "/proc/{other}/cwd/", open_otherwise=True)


@probe("process_vm_readv of another executor")
def read_other(clues: Clues) -> Any:
    buffer = ctypes.create_string_buffer(8)
    span = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    return call((310, 270), clues["other"], span, 1, span, 1, 0) or True


lists("another account's temporary folder", "{other_folder}", open_otherwise=True)
reads("another account's temporary file", "{other_file}", open_otherwise=True)
reads("another account's shared memory", "{other_shared}", open_otherwise=True)
opens("writing into another account's temporary folder", "{other_folder}/planted", "w", open_otherwise=True)


@probe("the names of other executors' temporary folders", open_otherwise=True)
def other_folders(clues: Clues) -> Any:
    own = tempfile.gettempdir()
    if own == clues["tmp"]:
        return os.listdir(own)
    return [
        name for name in os.listdir(os.path.dirname(own)) if not own.endswith(name) and os.listdir(f"{own}/../{name}")
    ]
