"""A script with decorators of the standard library; its objects travel to processes that do not have the script."""

from typing import Any

TEXT = '''
import functools

calls = []

@functools.lru_cache(maxsize=7, typed=True)
def fibonacci(n):
    """The nth number."""
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

fibonacci.unit = "rabbits"

@functools.singledispatch
def shown(value):
    """How a value is shown."""
    return "?"

@shown.register
def _(value: int):
    return str(value)

@shown.register(list)
def _(value):
    return [shown(each) for each in value]

class Model:
    def __init__(self, size):
        self.size = size

    @functools.cached_property
    def doubled(self):
        """Twice the size."""
        return 2 * self.size

    @functools.lru_cache
    def times(self, n):
        return n * self.size

    @functools.singledispatchmethod
    def kind(self, value):
        return "any"

    @kind.register
    def _(self, value: int):
        return "int"

class Refused(Exception):
    @functools.cached_property
    def length(self):
        return len(self.args)

def uses_all(x):
    model = Model(x)
    return fibonacci(30), shown([x, "text", [x]]), model.doubled, model.times(3), model.kind(1), model.kind("")
'''


def definitions() -> dict[str, Any]:
    """The script's definitions, by name."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(TEXT, namespace)
    return namespace
