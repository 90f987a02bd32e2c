"""Probes for secrets of the agent and of its zygote."""

import ctypes
import hashlib
import os
import re
from typing import Any

from .probing import Clues, call, probe, read


@probe("the environment of the worker", open_otherwise=True)
def own_environment(clues: Clues) -> Any:
    return [name for name in os.environ if "SECRET" in name or "TOKEN" in name or name.startswith("AWS")]


@probe("the token in the executor's own memory, inherited")
def own_memory(clues: Clues) -> Any:
    pattern = re.compile(rb"worker.token.for.\w{5}")
    with open("/proc/self/maps") as maps:
        # In small reads: a large read's buffer would be in the list, and freed before the memory is read.
        lines = list(maps)
    for line in lines:
        span, rights, *_ = line.split()
        start, end = (int(part, 16) for part in span.split("-"))
        if not rights.startswith("rw") or "[vvar" in line:
            continue
        for found in pattern.findall(ctypes.string_at(start, end - start)):
            if hashlib.sha256(found).hexdigest() == clues["token_hash"]:
                return found
    return None


@probe("descriptors that the executor inherited")
def inherited(clues: Clues) -> Any:
    links: dict[int, str] = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            links[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # the descriptor by which they are listed
            continue
    sockets = [link for link in links.values() if link.startswith("socket:")]
    others = [
        link for link in links.values() if not link.startswith(("socket:", "/memfd:cloudpar-output", "/dev/null"))
    ]
    return others + sockets[1:]


@probe("/proc/<agent>/environ")
def agent_environment(clues: Clues) -> Any:
    return read(f"/proc/{clues['agent']}/environ")


@probe("/proc/<agent>/mem")
def agent_memory(clues: Clues) -> Any:
    return open(f"/proc/{clues['agent']}/mem", "rb")


@probe("/proc/<agent>/maps")
def agent_maps(clues: Clues) -> Any:
    return read(f"/proc/{clues['agent']}/maps")


@probe("/proc/<agent>/fd")
def agent_descriptors(clues: Clues) -> Any:
    return os.listdir(f"/proc/{clues['agent']}/fd")


@probe("opening /proc/<agent>/fd/0")
def agent_stdin(clues: Clues) -> Any:
    return open(f"/proc/{clues['agent']}/fd/0", "rb")


@probe("/proc/<agent>/cwd")
def agent_folder(clues: Clues) -> Any:
    return os.listdir(f"/proc/{clues['agent']}/cwd/")


@probe("/proc/<agent>/root")
def agent_root(clues: Clues) -> Any:
    return os.listdir(f"/proc/{clues['agent']}/root/")


@probe("ptrace of the agent")
def trace_agent(clues: Clues) -> Any:
    return call((101, 117), 0x4206, clues["agent"], 0, 0) == 0


@probe("process_vm_readv of the agent")
def read_agent(clues: Clues) -> Any:
    buffer = ctypes.create_string_buffer(8)
    span = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    return call((310, 270), clues["agent"], span, 1, span, 1, 0) or True


@probe("process_vm_writev to the agent")
def write_agent(clues: Clues) -> Any:
    buffer = ctypes.create_string_buffer(8)
    span = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    return call((311, 271), clues["agent"], span, 1, span, 1, 0) or True


@probe("a descriptor of the agent, by pidfd_getfd")
def take_descriptor(clues: Clues) -> Any:
    return call((438, 438), os.pidfd_open(clues["agent"]), 0, 0) or True


@probe("the environment of the process that started the agent, which may have the token")
def parent_environment(clues: Clues) -> Any:
    return read(f"/proc/{clues['looks_after']}/environ")


@probe("/proc/<zygote>/environ", open_otherwise=True)
def zygote_environment(clues: Clues) -> Any:
    return read(f"/proc/{clues['zygote']}/environ")


@probe("/proc/<zygote>/mem, which would change all later executors")
def zygote_memory(clues: Clues) -> Any:
    return open(f"/proc/{clues['zygote']}/mem", "r+b", buffering=0)


@probe("the zygote's socket to the agent, by /proc/<zygote>/fd", open_otherwise=True)
def zygote_descriptors(clues: Clues) -> Any:
    return os.listdir(f"/proc/{clues['zygote']}/fd")


@probe("ptrace of the zygote")
def trace_zygote(clues: Clues) -> Any:
    return call((101, 117), 0x4206, clues["zygote"], 0, 0) == 0
