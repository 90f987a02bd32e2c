"""What holds for every test."""

import os
import signal
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import HealthCheck, settings

from support.scale import SCALE, Scale, record

# A shared machine may stop any example for a moment: no test is about how long one takes.
settings.register_profile("cloudpar", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("cloudpar")

# Some tests press Ctrl-C. A shell that starts the tests in the background makes them ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test reaches AWS: nothing listens at this address, which clients use if a test gives them no stand-in's.
os.environ |= {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture
def scale() -> Scale:
    """Chooses between a guarantee's quick and full form."""
    return SCALE


@pytest.fixture
def reached(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Say what a guarantee's test saw, as `make guarantees` prints it: after everything is asserted.

    Names in braces are counts, `reached("{runs} runs", runs=20)`: those of all tests are added up.
    `make guarantees` fails if a sum is too small: `reached("{runs} runs", runs=20, least={"runs": 80})`.
    """
    return partial(record, request.node.name)
