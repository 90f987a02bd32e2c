import logging
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from cloudpar_master.ports import Clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from types_boto3_autoscaling import AutoScalingClient

LOOK_S = 5.0
"""After the master has found the group awake, or has woken it, it does not look at the group for this many seconds."""

FIRST_INSTANCES = 1
"""How many instances a wake-up starts. The group's own scaling policies start the others."""

log = logging.getLogger("cloudpar_master")


class AutoScalingFleet:
    """An Auto Scaling group that sleeps at zero instances.

    The queue's metrics come minutes late, and not at all from an idle queue. So the master wakes the group when a
    client starts a package.
    """

    def __init__(self, client: "Callable[[], AutoScalingClient]", group: str, clock: Clock) -> None:
        self._client = client
        self._group = group
        self._clock = clock
        self._looked_at = 0.0

    def wake(self) -> None:
        """See the port."""
        now = self._clock.now()
        if 0 <= now - self._looked_at < LOOK_S:
            return
        try:
            groups = self._client().describe_auto_scaling_groups(AutoScalingGroupNames=[self._group])
            for group in groups["AutoScalingGroups"]:
                wanted = min(FIRST_INSTANCES, group["MaxSize"])
                if group["DesiredCapacity"] < wanted:
                    self._client().set_desired_capacity(
                        AutoScalingGroupName=self._group, DesiredCapacity=wanted, HonorCooldown=False
                    )
        except (ClientError, BotoCoreError) as error:  # the package starts nevertheless, and waits for its workers
            log.warning("the fleet could not be woken, its alarms will do it later: %s", error)
        else:
            self._looked_at = now
