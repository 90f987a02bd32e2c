"""Estimates what an executor of a stack's fleet costs."""

from statistics import median

from . import fleet, prices, stack, template
from .aws import Aws


def executor_usd(aws: Aws, name: str) -> float | None:
    """Estimate the price of an executor per hour, in USD; None if no price of the fleet's instance types is known.

    The estimate is the median over the fleet's instance types and zones, at the current spot prices, or at list prices
    if all instances are on demand. It includes the price of an instance's volume and, if the stack has a network of its
    own, of an instance's public address.

    Raises:
        DeploymentError: AWS refuses to show the stack's template, or does not answer.
    """
    body = stack.template(aws, name)
    kinds = template.instance_types(body)
    if template.all_on_demand(body):
        usd = [(kind, prices.on_demand_usd(kind)) for kind in kinds]
    else:
        usd = [(kind, price) for (kind, _), price in fleet.spot_prices(aws, kinds).items()]
    volume_gib, public = template.volume_gib(body), template.has_network(body)
    shares = [
        prices.hour([price], 0.0, volume_gib, public=public).total / executors
        for kind, price in usd
        if price is not None and (executors := prices.vcpus(kind))
    ]
    return round(median(shares), 6) if shares else None
