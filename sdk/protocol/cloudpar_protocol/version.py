"""The one place that names the release."""

__version__ = "0.4.0"
