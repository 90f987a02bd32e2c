import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from cloudpar_master.ports import Clock, Fleet
from cloudpar_protocol.client_messages import FleetStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from types_boto3_autoscaling import AutoScalingClient

LOOK_S = 5.0
"""After `wake` has found instances in the group or has started one, it makes no call for this many seconds. `status`
gives all clients the same answer for as long."""

FIRST_INSTANCES = 1
"""How many instances a wake-up starts at most. The group's own scaling policies start the others."""

ACTIVITIES = 10
MESSAGE_CHARS = 1000
FAILED = {"Failed", "Cancelled", "WaitingForSpotInstanceId"}

log = logging.getLogger("cloudpar_master")


class AutoScalingFleet(Fleet):
    """An Auto Scaling group that has no instances while there is no work.

    The queue's metrics come minutes late, and not at all from an idle queue. So the master wakes the group when a
    client starts a package.
    """

    def __init__(self, client: "Callable[[], AutoScalingClient]", group: str, clock: Clock) -> None:
        self._client = client
        self._group = group
        self._clock = clock
        self._woken_at = float("-inf")
        self._seen: FleetStatus | None = None
        self._seen_at = float("-inf")

    def wake(self) -> None:
        now = self._clock.now()
        if 0 <= now - self._woken_at < LOOK_S:
            return
        try:
            for group in self._groups():
                wanted = min(FIRST_INSTANCES, group["MaxSize"])
                if group["DesiredCapacity"] < wanted:
                    self._client().set_desired_capacity(
                        AutoScalingGroupName=self._group, DesiredCapacity=wanted, HonorCooldown=False
                    )
        except (ClientError, BotoCoreError) as error:  # the package starts nevertheless, and waits for its workers
            log.warning("the fleet could not be woken, its alarms will do it later: %s", error)
        else:
            self._woken_at = now

    def status(self) -> FleetStatus | None:
        """See the port. While instances start, also reports why the newest launch failed or what it waits for."""
        now = self._clock.now()
        if not 0 <= now - self._seen_at < LOOK_S:
            self._seen, self._seen_at = self._look(), now
        return self._seen

    def _look(self) -> FleetStatus | None:
        try:
            for group in self._groups():
                running = sum(each["LifecycleState"] == "InService" for each in group["Instances"])
                starting = max(0, group["DesiredCapacity"] - running)
                return FleetStatus(running=running, starting=starting, message=self._failure() if starting else None)
        except (ClientError, BotoCoreError) as error:  # clients only show the status to people, so answer without it
            log.warning("the fleet could not be looked at: %s", error)
        return None

    def _groups(self) -> Any:
        return self._client().describe_auto_scaling_groups(AutoScalingGroupNames=[self._group])["AutoScalingGroups"]

    def _failure(self) -> str | None:
        found = self._client().describe_scaling_activities(AutoScalingGroupName=self._group, MaxRecords=ACTIVITIES)
        return launch_failure(found["Activities"])


def launch_failure(activities: Iterable[Mapping[str, Any]]) -> str | None:
    """Return why the newest launch failed, or what it waits for.

    The result is None if this launch did not fail, or if there was no launch. `activities` has the newest activity
    first.

    >>> launch_failure([{"Description": "Launching one.", "StatusCode": "Failed", "StatusMessage": "No spot."}])
    'No spot.'
    """
    for activity in activities:
        if activity["Description"].startswith("Launching"):
            failed = activity["StatusCode"] in FAILED
            return (activity.get("StatusMessage") or activity["StatusCode"])[:MESSAGE_CHARS] if failed else None
    return None
