"""Probes for secrets of the agent and of its zygote."""

import ctypes
import hashlib
import os
import re
from typing import Any

from .probing import Clues, call, lists, opens, probe, reads


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
    # The page for its own account's credentials is empty here (test_g18_credentials.py).
    own = ("socket:", "/memfd:cloudpar-output", "/memfd:cloudpar-credentials", "/dev/null")
    others = [link for link in links.values() if not link.startswith(own)]
    return others + sockets[1:]


reads("/proc/<agent>/environ", "/proc/{agent}/environ")
opens("/proc/<agent>/mem", "/proc/{agent}/mem", "rb")
reads("/proc/<agent>/maps", "/proc/{agent}/maps")
lists("/proc/<agent>/fd", "/proc/{agent}/fd")
opens("opening /proc/<agent>/fd/0", "/proc/{agent}/fd/0", "rb")
lists("/proc/<agent>/cwd", "/proc/{agent}/cwd/")
lists("/proc/<agent>/root", "/proc/{agent}/root/")


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


reads("the environment of the process that started the agent, which may have the token", "/proc/{looks_after}/environ")
reads("/proc/<zygote>/environ", "/proc/{zygote}/environ", open_otherwise=True)


@probe("/proc/<zygote>/mem, which would change all later executors")
def zygote_memory(clues: Clues) -> Any:
    return open(f"/proc/{clues['zygote']}/mem", "r+b", buffering=0)


lists("the zygote's socket to the agent, by /proc/<zygote>/fd", "/proc/{zygote}/fd", open_otherwise=True)


@probe("ptrace of the zygote")
def trace_zygote(clues: Clues) -> Any:
    return call((101, 117), 0x4206, clues["zygote"], 0, 0) == 0
