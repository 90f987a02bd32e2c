"""The instance metadata: to whoever asks from this machine, by plain HTTP, they give the credentials of its role.

No filter of an executor sees to which address it connects, but to which port: where one of these services answers,
tasks of a shared pool have no TCP connections to its port, wherever they lead. Where a firewall refuses the addresses,
nothing answers, and tasks have all ports.
"""

import errno
import os
import selectors
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Final, NamedTuple
from urllib.parse import urlsplit

_ANSWERS_S: Final = 1.0
_REST_S: Final = 0.1
"""Where one answers, so much is enough for the others: their port is closed anyway."""
_UNDER_WAY: Final = {0, errno.EINPROGRESS}


class Service(NamedTuple):
    """One address of them."""

    host: str
    port: int = 80


KNOWN: Final = tuple(map(Service, ("169.254.169.254", "fd00:ec2::254", "169.254.170.2", "169.254.170.23")))
"""Of an instance, the first of them in most clouds, and of containers of ECS and EKS."""


def services(environment: Mapping[str, str] = os.environ) -> list[Service]:
    """Those known, and the one that AWS's programs here are told to ask."""
    found = list(KNOWN)
    with suppress(ValueError):  # what is no address answers nobody
        named = urlsplit(environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", ""))
        if named.hostname:
            found.append(Service(named.hostname, named.port or 80))
    return found


def answering(asked: Sequence[Service]) -> list[Service]:
    """Those that take a connection, over which nothing is sent; without a network, those that may once there is one."""
    found: set[Service] = set()
    with ExitStack() as held, selectors.DefaultSelector() as waiting:
        for service in asked:
            with suppress(OSError):  # this machine does not speak the protocol, or knows no such name
                family = socket.AF_INET6 if ":" in service.host else socket.AF_INET
                line = held.enter_context(socket.socket(family, socket.SOCK_STREAM))
                line.setblocking(False)
                state = line.connect_ex(service)
                if state in _UNDER_WAY:
                    waiting.register(line, selectors.EVENT_WRITE, (line, service))
                elif state == errno.ENETUNREACH and family == socket.AF_INET:
                    found.add(service)
        while waiting.get_map() and (ready := waiting.select(_REST_S if found else _ANSWERS_S)):
            for key, _ in ready:
                line, service = key.data
                waiting.unregister(line)
                if line.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                    found.add(service)
    return [service for service in asked if service in found]


def ports(found: Sequence[Service]) -> list[int]:
    """Those of some services."""
    return sorted({each.port for each in found})
