"""Computes what floods cost: as many requests as the API's throttles let pass, each as dear as its sender can make it.

The throttles bound the number of requests, and not their size: API Gateway counts a large body as several requests.
"""

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.errors import RequestError
from cloudpar_protocol.limits import BODY_BYTES
from cloudpar_protocol.routes import ROUTES, Route
from cloudpar_protocol.tokens import new_token
from support.timeline import Timeline

from .abuse import abuses
from .bill import HTTP_USD, usd_of
from .counts import Counts
from .master import METERED_BYTES, USER, on_aws

API_BODY_BYTES = 10 * 1024**2
"""The largest body that API Gateway accepts. Lambda refuses bodies over 6 MB. The calculation assumes that AWS charges
for such a request nevertheless, and that the function is called.
"""

CLIENTS = "POST /v1/{name}"
"""The throttle that all requests of clients share. Each route of workers has a throttle of its own."""

Prices = Mapping[str, float]
"""What the dearest request costs that a throttle lets pass, in USD."""


def strangers() -> Prices:
    """Return the prices of requests with a made-up token, which has the form of a real one, so that it is looked up."""
    usd: dict[str, float] = {}
    for route in ROUTES:
        if route.role != "admin":  # the API does not have these routes
            here = CLIENTS if route.role != "worker" else f"POST {route.path}"
            usd[here] = max(usd.get(here, 0.0), refused_usd(route, new_token()) + body_usd(API_BODY_BYTES))
    return usd


def accounts() -> Prices:
    """Return the prices of requests with the token of an account. The routes of workers refuse it."""
    workers = {f"POST {route.path}": refused_usd(route, USER) for route in ROUTES if route.role == "worker"}
    dearest = abuses(packages=1)[0].usd + body_usd(BODY_BYTES)
    return {CLIENTS: dearest, **{here: usd + body_usd(API_BODY_BYTES) for here, usd in workers.items()}}


def refused_usd(route: Route[Any, Any], token: str) -> float:
    """Return what a small request costs in USD if its route refuses the token.

    The function is a new instance, so it remembers neither tokens nor accounts.
    """
    counts = Counts()
    with on_aws(Timeline(), counts, hosts=0) as master, counts.during(route.name) as made:
        try:
            master.call(token, route, Hello())  # the functions check the token before they read the message
        except RequestError:
            made["API Gateway"] = made["Lambda"] = 1
        else:
            raise AssertionError(f"{route.name} accepts the token")
    return sum(number * usd_of(what) for what, number in made.items())


def body_usd(size: int) -> float:
    """Return what a body of this size costs in addition to a small one, in USD."""
    return (ceil(size / METERED_BYTES) - 1) * HTTP_USD


def shown(environment: str, throttles: Mapping[str, float], *senders: Prices) -> Iterator[list[str]]:
    """Yield the rows of an environment in the table of docs/cost-model.md.

    Args:
        environment: The name of the environment.
        throttles: How many requests a second each throttle lets pass.
        senders: The prices of each kind of sender. Each gets two columns: USD an hour and USD a day.
    """

    def row(name: str, *passed: str) -> list[str]:
        money = []
        for prices in senders:
            hour_usd = 3600 * sum(throttles[each] * prices[each] for each in passed)
            money += [f"{hour_usd:,.1f}", f"{24 * hour_usd:,.0f}"]
        return [environment, name, f"{sum(throttles[each] for each in passed):,}", *money]

    yield row("clients', together", CLIENTS)
    (worker,) = {tuple(row("each of workers", each)) for each in throttles if each != CLIENTS}
    yield list(worker)
    yield row("all", *throttles)
