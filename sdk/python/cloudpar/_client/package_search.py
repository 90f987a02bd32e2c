"""Finds a package by the first characters of its id."""

from typing import Any, Protocol

from cloudpar.errors import NotFound
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import ListPackages, PackageSummary

NEWEST = 1000
"""How many packages the master lists in one answer, the newest first. The search for the start of an id does not find
older packages."""

COMPLETE = 32
"""The length of a package id, in characters. The search treats a shorter text as the start of an id."""


class Caller(Protocol):
    """Sends requests to the master."""

    def call(self, route: Any, message: Any, /) -> Any:
        """Send a request and return the answer."""


def find(master: Caller, package_id: str) -> PackageSummary:
    """Find the package with this id, or the only one whose id starts with this text.

    The search finds a whole id, no matter how old the package is. It looks for the start of an id only among the newest
    packages that the caller may see, at most NEWEST.

    Raises:
        ValueError: The id is empty.
        NotFound: No package matches, or several packages match.
        CloudparError: The master refuses the request or does not answer.
    """
    if not package_id:
        raise ValueError("the package id is empty: give an id, or the first characters of one")
    whole = package_id if len(package_id) >= COMPLETE else None
    request = ListPackages(limit=NEWEST, package_id=whole)
    listed: list[PackageSummary] = master.call(routes.LIST_PACKAGES, request).packages
    found = [each for each in listed if each.package_id.startswith(package_id)]
    exact = [each for each in found if each.package_id == package_id]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if found:
        raise NotFound(f"{len(found)} packages start with {package_id!r}: give more of the id")
    among = "" if whole else f" among the newest {NEWEST}"
    raise NotFound(f"no package {package_id!r}{among} that you may see: see `cloudpar packages list`")
