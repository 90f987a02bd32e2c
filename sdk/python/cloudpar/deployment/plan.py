import msgspec

from cloudpar.errors import ConfigurationError

from .prices import VCPUS
from .stack import stack_name

FAMILIES = {
    "arm64": ("c8g", "c7g", "c6g", "m8g", "m7g", "m6g"),
    "x86_64": ("c7i", "c7a", "c6i", "c6a", "m7i", "m7a", "m6i", "m6a", "c7i-flex", "m7i-flex"),
}
"""The instance families of infra/lib/environments.ts, by architecture."""

ONLY_NAMED = ("c7i-flex", "m7i-flex")
"""The families that a deployment uses only if the setting `families` names them."""

KINDS = {"2": "c", "4": "m"}
"""The first letter of the names of instance families, by their GiB of memory per core (setting memoryPerCore)."""

ARCHITECTURES = ",".join(FAMILIES)
LEAST_ZONES = 2


class Plan(msgspec.Struct, frozen=True):
    """The part of a deployment that the checks need to know.

    `builds_image` means that Docker builds the worker's image on this machine. `vpc` and `subnets` are the ids of an
    existing network. Without them, the stack makes a network of its own in the first `zones` zones. `api_endpoint` is
    the VPC endpoint of a private API; None means that the API is public.
    """

    stack: str
    max_instances: int
    on_demand: int
    instance_size: str
    zones: int
    builds_image: bool
    builds_functions: bool
    architectures: tuple[str, ...]
    kind: str
    families: tuple[str, ...] | None
    vpc: str | None
    subnets: tuple[str, ...]
    api_endpoint: str | None

    @property
    def spot(self) -> int:
        """The number of instances that may be spot instances."""
        return max(0, self.max_instances - self.on_demand)

    @property
    def drawn(self) -> tuple[str, ...]:
        """The instance families that the fleet may use."""
        known = (each for name in self.architectures for each in FAMILIES.get(name, ()))
        return self.families or tuple(each for each in known if each not in ONLY_NAMED and each.startswith(self.kind))

    @property
    def types(self) -> tuple[str, ...]:
        """The instance types that the fleet may use."""
        return tuple(f"{family}.{self.instance_size}" for family in self.drawn)

    @property
    def instance_vcpus(self) -> int:
        """The vCPUs of one instance. A size that VCPUS does not contain counts as the largest size in VCPUS."""
        return VCPUS.get(self.instance_size, max(VCPUS.values()))


def read_plan(environment: str, settings: dict[str, str]) -> Plan:
    """Read the plan from the settings; infra/lib/environments.ts has the defaults.

    Raises:
        ConfigurationError: A number is malformed or out of range.
    """
    families, vpc, subnets = (settings.get(name) for name in ("families", "vpcId", "subnetIds"))
    return Plan(
        stack=stack_name(environment),
        max_instances=_count(settings, "maxInstances", 4, 1),
        on_demand=_count(settings, "onDemandBase", 0, 0),
        instance_size=settings.get("instanceSize", "large" if environment == "dev" else "xlarge"),
        zones=_count(settings, "zones", 3 if environment == "prod" else 2, LEAST_ZONES),
        builds_image="workerImage" not in settings and settings.get("imageBuild", "docker") == "docker",
        builds_functions="bundle" not in settings,
        architectures=_names(settings.get("architectures", ARCHITECTURES)),
        kind=KINDS.get(settings.get("memoryPerCore", "2"), ""),
        families=_names(families) if families else None,
        vpc=vpc.strip() if vpc else None,
        subnets=_names(subnets) if subnets else (),
        api_endpoint=settings.get("apiVpcEndpoint", "").strip() or None,
    )


def _count(settings: dict[str, str], name: str, otherwise: int, least: int) -> int:
    given = settings.get(name, str(otherwise))
    if not given.isdecimal() or int(given) < least:
        good = f"--set {name}={max(otherwise, 1)}"
        raise ConfigurationError(f"{name}={given} is no whole number from {least}: write {good}")
    return int(given)


def _names(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(","))
