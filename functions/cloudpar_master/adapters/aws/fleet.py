import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from cloudpar_master.core.fleet_size import HostShape, Work, hosts_needed
from cloudpar_master.ports import Clock, Fleet, FleetSize
from cloudpar_protocol.client_messages import FleetStatus
from cloudpar_protocol.errors import RequestError

from .turn import Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from types_boto3_autoscaling import AutoScalingClient

LOOK_S = 5.0
"""Seconds for which `grow` makes no call if the group is as large as the work needs. `status` gives all clients the
same answer for this time."""

ACTIVITIES = 10
MESSAGE_CHARS = 1000
FAILED = {"Failed", "Cancelled", "WaitingForSpotInstanceId"}

log = logging.getLogger("cloudpar_master")


class AutoScalingFleet(Fleet):
    """An Auto Scaling group that has no instances while there is no work.

    The master sets the group's desired capacity itself, and only ever raises it. An alarm on the queue's metrics could
    not do so: SQS reports the metrics minutes late, and not at all for an idle queue.

    Args:
        client: Returns the client for Auto Scaling. The client is made at its first use.
        group: The name of the group.
        clock: Tells the time, from which the fleet computes how old its knowledge of the group is.
        turn: The lock that lets only one process at a time raise the capacity.
        shape: What each instance offers.
    """

    def __init__(
        self, client: "Callable[[], AutoScalingClient]", group: str, clock: Clock, turn: Turn, shape: HostShape
    ) -> None:
        self._client = client
        self._group = group
        self._clock = clock
        self._turn = turn
        self._shape = shape
        self._desired = self._largest = 0
        self._looked_at = float("-inf")
        self._seen: FleetStatus | None = None
        self._seen_at = float("-inf")

    def grow(self, works: Sequence[Work]) -> None:
        wanted = hosts_needed(works, self._shape)
        is_fresh = 0 <= self._clock.now() - self._looked_at < LOOK_S
        if not wanted or (is_fresh and self._desired >= min(wanted, self._largest)):
            return
        try:
            if self._is_smaller(wanted) and self._turn.take():
                try:
                    self._raise(wanted)
                finally:
                    self._turn.release()
        except (ClientError, BotoCoreError, RequestError) as error:  # the packages wait, and the timer tries again
            log.warning("the fleet could not be enlarged, the timer will try again: %s", error)

    def _is_smaller(self, wanted: int) -> bool:
        """Ask AWS for the group's size, and return whether it is smaller than `wanted` and can grow."""
        for group in self._groups():
            self._desired, self._largest = group["DesiredCapacity"], group["MaxSize"]
            self._looked_at = self._clock.now()
            return self._desired < min(wanted, self._largest)
        return False

    def _raise(self, wanted: int) -> None:
        # AWS sets the capacity whatever it was before. If this process did not read the capacity again in its turn,
        # this call could undo what another process has set meanwhile, and AWS would end instances with running tasks.
        if self._is_smaller(wanted):
            wanted = min(wanted, self._largest)
            self._client().set_desired_capacity(
                AutoScalingGroupName=self._group, DesiredCapacity=wanted, HonorCooldown=False
            )
            self._desired = wanted

    def size(self) -> FleetSize | None:
        try:
            for group in self._groups():
                return FleetSize(wanted=group["DesiredCapacity"], running=_in_service(group))
        except (ClientError, BotoCoreError) as error:  # the timer has other work, and looks again a minute later
            log.warning("the fleet could not be looked at: %s", error)
        return None

    def status(self) -> FleetStatus | None:
        """See the port. While instances start, the status says why the newest launch failed, or what it waits for."""
        now = self._clock.now()
        if not 0 <= now - self._seen_at < LOOK_S:
            self._seen, self._seen_at = self._look(), now
        return self._seen

    def _look(self) -> FleetStatus | None:
        try:
            for group in self._groups():
                running = _in_service(group)
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


def _in_service(group: Mapping[str, Any]) -> int:
    return sum(each["LifecycleState"] == "InService" for each in group["Instances"])


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
