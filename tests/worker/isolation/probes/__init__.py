"""Attacks by task code, one function each: it returns what it found, or nothing; an OSError means that it was refused.

The functions travel by value, with everything that they call, and run in an executor.
"""

import sys

import cloudpickle

from . import agent, files, network, others, rights, signals
from .probing import PROBES, Probe

__all__ = ["PROBES", "Probe", "agent", "files", "network", "others", "rights", "signals"]

cloudpickle.register_pickle_by_value(sys.modules[__name__])
