from collections.abc import Iterator
from typing import Any

import botocore.session
from botocore.model import OperationModel

from . import models, others, queues, tables
from .params import Params

SERVICES = {
    "dynamodb": tables.broken,
    "sqs": queues.broken,
    "s3": others.objects,
    "ssm": others.parameters,
    "sts": others.roles,
}


class BrokenLimit(AssertionError):
    """AWS would refuse a request that a test has sent."""


def watch() -> None:
    """Check the requests of all clients whose sessions are made from now on."""
    fresh = botocore.session.get_session

    def watched(*given: Any, **named: Any) -> botocore.session.Session:
        session = fresh(*given, **named)
        session.register("before-parameter-build", check)
        return session

    botocore.session.get_session = watched


def check(**event: Any) -> None:
    """Handle the event before-parameter-build, which precedes each request and each signed link.

    Raises:
        BrokenLimit: AWS would refuse the request.
    """
    if found := list(broken(event["params"], event["model"])):
        raise BrokenLimit(f"{event['model'].name}: {'; '.join(found)}")


def broken(params: Params, model: OperationModel) -> Iterator[str]:
    """Yield the limits that a request breaks."""
    if model.input_shape is not None:
        yield from models.broken(params, model.input_shape)
    service = SERVICES.get(model.service_model.service_name)
    if service is not None:
        yield from service(model.name, params)
