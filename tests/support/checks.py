"""A check that a step of a simulated system must pass."""


class Broken(AssertionError):
    """A check has failed."""


def hold(condition: object, *what: object) -> None:
    """Check a condition.

    Raises:
        Broken: It does not hold.
    """
    if not condition:
        raise Broken(" ".join(map(str, what)))
