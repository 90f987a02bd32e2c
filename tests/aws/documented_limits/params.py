from collections.abc import Mapping
from typing import Any

KIB, MIB = 1 << 10, 1 << 20

Params = Mapping[str, Any]
"""The arguments of a request, as a client's method gets them."""
