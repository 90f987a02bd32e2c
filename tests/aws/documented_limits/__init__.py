"""Checks the requests of the tests against botocore's models and AWS's documented limits, which stand-ins forgive."""

from .watch import BrokenLimit, broken, watch

__all__ = ["BrokenLimit", "broken", "watch"]
