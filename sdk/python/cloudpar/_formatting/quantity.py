def quantity(count: int, noun: str) -> str:
    """A number with its noun, in the singular or the plural.

    Example:
        >>> quantity(1, "executor"), quantity(2000, "executor"), quantity(0, "error")
        ('1 executor', '2,000 executors', '0 errors')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
