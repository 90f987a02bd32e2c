"""Lists mechanisms that could confine executors but that workers do not use, and whether this machine has them."""

from . import control_groups
from .confinement import Mechanism
from .namespaces import pid_namespaces_work


def unused_mechanisms() -> list[Mechanism]:
    """Return these mechanisms. The call may fork: make it only in a process with one thread."""
    controllers = control_groups.delegated()
    return [
        Mechanism(
            "a PID namespace for each executor",
            pid_namespaces_work(),
            "the kernel refuses it here, and nothing is to do: the worker would not use it, since it ends all "
            "processes of an executor without one (docs/isolation.md)",
            "this machine permits it, but the worker does not use it, since it ends all processes of an executor "
            "without one (docs/isolation.md)",
            used=False,
        ),
        Mechanism(
            "control groups (cgroup v2)",
            len(controllers) == len(control_groups.WANTED),
            f"of cpu, memory and pids, {' and '.join(controllers) or 'none'} is delegated here, and nothing is to do: "
            "the worker would not use them, since it measures memory and weighs threads itself (docs/isolation.md)",
            "cpu, memory and pids are delegated here, but the worker does not use them, since it measures memory and "
            "weighs threads itself (docs/isolation.md)",
            used=False,
        ),
    ]
