import msgspec

from cloudpar.errors import ConfigurationError

from .prices import VCPUS

ARCHITECTURES = "arm64,x86_64"


class Plan(msgspec.Struct, frozen=True):
    """What is to be deployed, as far as the checks care."""

    max_instances: int
    instance_size: str
    builds_image: bool
    builds_functions: bool
    architectures: tuple[str, ...]

    @property
    def instance_vcpus(self) -> int:
        """Of one instance."""
        return VCPUS.get(self.instance_size, max(VCPUS.values()))


def read_plan(environment: str, settings: dict[str, str]) -> Plan:
    """What the checks must know of the settings; infra/lib/environments.ts has the defaults.

    Raises:
        ConfigurationError: maxInstances is no number.
    """
    given = settings.get("maxInstances", "4")
    if not given.isdecimal() or int(given) < 1:
        raise ConfigurationError(f"maxInstances={given} is no number of instances: write --set maxInstances=4")
    return Plan(
        max_instances=int(given),
        instance_size=settings.get("instanceSize", "large" if environment == "dev" else "xlarge"),
        builds_image="workerImage" not in settings,
        builds_functions="bundle" not in settings,
        architectures=tuple(each.strip() for each in settings.get("architectures", ARCHITECTURES).split(",")),
    )
