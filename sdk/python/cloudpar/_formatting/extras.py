"""How to install the optional packages that only some commands need."""

import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, requires


def install_command(extra: str) -> str:
    """Return the command that installs the packages of an extra, such as "aws", for this Python.

    The command lists the packages instead of `cloudpar[aws]`: this project is on no package index, so another person
    could upload a package named cloudpar to an index. If cloudpar itself is not installed, the function returns the
    command for a checkout, followed by the words "in a checkout of Cloud Parallelizer".

    >>> install_command("plot").partition(" -m ")[2]
    "pip install 'matplotlib>=3.9' 'numpy>=2.0'"
    """
    try:
        listed = requires("cloudpar") or []
    except PackageNotFoundError:  # cloudpar runs from its source folder and is not installed
        return f"pip install '.[{extra}]' in a checkout of Cloud Parallelizer"
    marker = re.compile(rf";\s*extra\s*==\s*['\"]{re.escape(extra)}['\"]\s*$")
    packages = [marker.sub("", each).strip() for each in listed if marker.search(each)]
    return shlex.join([sys.executable, "-m", "pip", "install", *packages])
