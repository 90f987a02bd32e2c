"""Probes for signals to other processes, and for ways past limits."""

import errno
import fcntl
import os
import resource
import signal
import socket
import struct
from pathlib import Path
from typing import Any

from .probing import Clues, call, probe, signals

signals("killing the agent", "agent", 9)


@probe("stopping the agent, by its thread")
def stop_agent(clues: Clues) -> Any:
    return call((234, 131), clues["agent"], clues["agent"], 19) == 0


@probe("a signal to the agent, by pidfd_send_signal")
def signal_agent(clues: Clues) -> Any:
    signal.pidfd_send_signal(os.pidfd_open(clues["agent"]), 15)
    return "ended"


@probe("a signal to the agent, by the number of one of its threads", open_otherwise=True)
def signal_thread(clues: Clues) -> Any:
    agent = clues["agent"]
    threads = [int(name) for name in os.listdir(f"/proc/{agent}/task") if int(name) != agent]
    os.kill(threads[0], 0)
    return "ended"


@probe("a signal to the agent, by pidfd_send_signal to its folder in /proc", open_otherwise=True)
def signal_folder(clues: Clues) -> Any:
    folder = os.open(f"/proc/{clues['agent']}", os.O_RDONLY | os.O_DIRECTORY)
    return call((424, 424), folder, 0, None, 0) == 0


@probe("a signal to the agent, by a descriptor that it owns (F_SETOWN)", open_otherwise=True)
def signal_owner(clues: Clues) -> Any:
    mine, _ = socket.socketpair()
    return fcntl.fcntl(mine, fcntl.F_SETOWN, clues["agent"]) == 0


@probe("a signal to the agent, by a descriptor that it owns (ioctl)", open_otherwise=True)
def signal_owner_by_ioctl(clues: Clues) -> Any:
    mine, _ = socket.socketpair()
    return bool(fcntl.ioctl(mine, 0x8901, struct.pack("i", clues["agent"])))


@probe("another signal than SIGIO for a descriptor (F_SETSIG)", open_otherwise=True)
def choose_signal(clues: Clues) -> Any:
    mine, _ = socket.socketpair()
    return fcntl.fcntl(mine, 10, signal.SIGTERM) == 0


signals("killing the zygote", "zygote", 9)


@probe("killing the zygote's process group")
def kill_group(clues: Clues) -> Any:
    os.killpg(clues["zygote"], 9)
    return "killed"


signals("killing the process that started the agent", "looks_after", 0)
signals("killing another account's executor", "other", 9)


@probe("killing every process")
def kill_everything(clues: Clues) -> Any:
    os.kill(-1, 9)
    return "killed"


@probe("taking the agent's descriptors away, by prlimit")
def limit_agent(clues: Clues) -> Any:
    return resource.prlimit(clues["agent"], resource.RLIMIT_NOFILE, (16, 16))


@probe("more processes than allowed, by setrlimit")
def more_processes(clues: Clues) -> Any:
    try:
        resource.setrlimit(resource.RLIMIT_NPROC, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except ValueError as error:
        raise PermissionError(str(error)) from None
    return "raised"


@probe("the agent's cores, by sched_setaffinity", open_otherwise=True)
def move_agent(clues: Clues) -> Any:
    no_core = 1023
    try:
        os.sched_setaffinity(clues["agent"], {no_core})
    except OSError as error:
        return "it may" if error.errno == errno.EINVAL else None  # the kernel looks at the right first
    return None


@probe("the agent's scheduler, by sched_setscheduler", open_otherwise=True)
def schedule_agent(clues: Clues) -> Any:
    os.sched_setscheduler(clues["agent"], os.SCHED_OTHER, os.sched_param(0))
    return "scheduled"


@probe("the agent's priority, by setpriority", open_otherwise=True)
def lower_agent(clues: Clues) -> Any:
    os.setpriority(os.PRIO_PROCESS, clues["agent"], os.getpriority(os.PRIO_PROCESS, clues["agent"]))
    return "set"


@probe("the agent's priority for disks, by ioprio_set", open_otherwise=True)
def ioprio_agent(clues: Clues) -> Any:
    return call((251, 30), 1, clues["agent"], 2 << 13 | 4) == 0


@probe("core dumps")
def core_dumps(clues: Clues) -> Any:
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
    except ValueError as error:
        raise PermissionError(str(error)) from None
    return "allowed"


@probe("hiding from the kernel's out-of-memory killer", open_otherwise=True)
def hide_from_oom(clues: Clues) -> Any:
    Path("/proc/self/oom_score_adj").write_text("0")
    return "hidden"


@probe("a greater weight of its own session, by /proc/self/autogroup")
def weigh_more(clues: Clues) -> Any:
    Path("/proc/self/autogroup").write_text("0")
    return "weighed"
