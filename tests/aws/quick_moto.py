"""Makes moto compute once what it would compute at each request."""

from functools import cache
from typing import Any

from moto.core import responses, serialize, utils
from moto.sqs import models


def apply() -> None:
    """Replace functions of moto by ones with the same results. A crash test sends a million requests."""
    for module in responses, models:
        setattr(module, "camelcase_to_underscores", cache(utils.camelcase_to_underscores))  # noqa: B010 - not exported
    setattr(responses, "method_names_from_class", cache(utils.method_names_from_class))  # noqa: B010 - as above
    original = serialize.AttributePicker.__call__

    def pick(self: serialize.AttributePicker, context: serialize.AttributePickerContext) -> Any:
        """Take a value that is there under its own name, and look for other names only otherwise."""
        value = context.obj.get(context.key) if type(context.obj) is dict else None
        return original(self, context) if value is None or self.response_transformers else value

    serialize.AttributePicker.__call__ = pick  # type: ignore[method-assign]
