"""The instance metadata: to whoever asks from this machine, by plain HTTP, they give the credentials of its role.

No filter of an executor sees to which address it connects, but to which port: where one of these services answers,
tasks of a shared pool have no TCP connections to its port, wherever they lead. Where a firewall refuses the addresses,
nothing answers, and tasks have all ports.
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
"""A first packet that gets lost is sent again after a second."""
_REST_S: Final = 0.1
"""Enough for those whose port is closed anyway, since another one answers there."""


class Service(NamedTuple):
    """One address of them."""

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
"""Of instances, the first of them in most clouds, then of AWS, Google, Alibaba, Tencent; of containers of ECS, EKS."""


def services(environment: Mapping[str, str] = os.environ) -> list[Service]:
    """Those known, and the address that AWS's programs here are told to ask."""
    found = list(KNOWN)
    with suppress(ValueError):  # what is no address answers nobody
        named = urlsplit(environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", ""))
        found.append(Service(str(ip_address(named.hostname or "")), named.port or 80))
    return found


def answering(asked: Sequence[Service]) -> list[Service]:
    """Those that take a connection, over which nothing is sent."""
    found: set[Service] = set()
    with ExitStack() as held, selectors.DefaultSelector() as waiting:
        for service in asked:
            with suppress(OSError):  # this machine does not speak the protocol
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
                with suppress(OSError):  # it was refused: nobody is at the other end
                    line.getpeername()
                    found.add(service)
    return [service for service in asked if service in found]


def ports(found: Iterable[Service]) -> list[int]:
    """Those of some services."""
    return sorted({each.port for each in found})
