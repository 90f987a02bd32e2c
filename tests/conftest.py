"""What holds for every test."""

from hypothesis import HealthCheck, settings

# A shared machine may stop any example for a moment: no test is about how long one takes.
settings.register_profile("cloudpar", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("cloudpar")
