"""Finds instance metadata services. Such a service gives the credentials of this machine's role to every process.

The kernel's filter knows the port to which an executor connects, but not the address. So if a service answers here, and
if the kernel can limit ports, tasks of a shared worker can make no TCP connection to the service's port, at any
address. If a firewall blocks the services' addresses, no service answers, and all ports stay open to tasks.
"""

import os
import selectors
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import urlsplit

_ANSWERS_S: Final = 2.0
"""How long to wait for an answer, in seconds. The kernel sends a lost first packet again after one second."""
_REST_S: Final = 0.1
"""How long to wait for a service, in seconds, if another service has already answered at the same port. The worker then
closes this port to tasks anyway.
"""


class Service(NamedTuple):
    """The address of one service."""

    host: str
    port: int = 80


KNOWN: Final = tuple(
    map(
        Service,
        (
            "169.254.169.254", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "169.254.0.23",
            "169.254.170.2", "169.254.170.23", "fd00:ec2::23",
        ),
    )
)  # fmt: skip
"""The addresses of services on instances of AWS, Google, Alibaba and Tencent, and in containers of ECS and EKS."""


def services(environment: Mapping[str, str] = os.environ) -> list[Service]:
    """Return the known services, and the one in AWS_EC2_METADATA_SERVICE_ENDPOINT, if that names an IP address."""
    found = list(KNOWN)
    with suppress(ValueError):  # the variable does not contain an address
        named = urlsplit(environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", ""))
        found.append(Service(str(ip_address(named.hostname or "")), named.port or 80))
    return found


def answering(asked: Sequence[Service]) -> list[Service]:
    """Return the services that accept a connection. Nothing is sent over the connection."""
    found: set[Service] = set()
    with ExitStack() as held, selectors.PollSelector() as waiting:
        for service in asked:
            with suppress(OSError):  # this machine has no IPv6, or no IPv4
                family = socket.AF_INET6 if ":" in service.host else socket.AF_INET
                line = held.enter_context(socket.socket(family, socket.SOCK_STREAM))
                line.setblocking(False)
                line.connect_ex(service)
                waiting.register(line, selectors.EVENT_WRITE, (service, line))
        until = time.monotonic() + _ANSWERS_S
        while waiting.get_map():
            left = {service.port for service, _ in (key.data for key in waiting.get_map().values())}
            closed = left <= {service.port for service in found}
            ready = waiting.select(_REST_S if closed else max(0.0, until - time.monotonic()))
            if not ready:
                break
            for key, _ in ready:
                waiting.unregister(key.fileobj)
                service, line = key.data
                with suppress(OSError):  # the connection was refused
                    line.getpeername()
                    found.add(service)
    return [service for service in asked if service in found]


def ports(found: Iterable[Service]) -> list[int]:
    """Return the ports of these services."""
    return sorted({each.port for each in found})
