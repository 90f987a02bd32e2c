import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from cloudpar_master.core.fleet_size import HostShape, Work, hosts_needed
from cloudpar_master.core.shortage import Shortage
from cloudpar_master.ports import Clock, Fleet, FleetSize
from cloudpar_protocol.client_messages import FleetStatus
from cloudpar_protocol.errors import RequestError

from .fleet_lock import FleetLock

if TYPE_CHECKING:
    from collections.abc import Callable

    from types_boto3_autoscaling import AutoScalingClient

LOOK_S = 5.0
"""Seconds for which `grow` sends no request to AWS after it has seen that the group is large enough for the work, or
must not grow now. For this time `status` also returns the same answer to all clients."""

PAUSED = "no worker on the last machines reached the master; the next ones start in {minutes} min at the latest"

ACTIVITIES = 10
MESSAGE_CHARS = 1000
FAILED = {"Failed", "Cancelled", "WaitingForSpotInstanceId"}

log = logging.getLogger("cloudpar_master")


class AutoScalingFleet(Fleet):
    """An Auto Scaling group that has no instances while there is no work.

    The master sets the group's desired capacity itself, and only ever raises it. An alarm on the queue's metrics would
    be too slow: SQS reports these metrics minutes late, and not at all for an idle queue.

    Args:
        client: Returns the client for Auto Scaling. The client is made at its first use.
        group: The name of the group.
        clock: Tells the time, from which the fleet computes how old its knowledge of the group is.
        lock: The lock that lets only one process at a time raise the capacity. It also stores the fleet's shortage.
        shape: What each instance offers: how many executors, and for how many chunks the fleet gets one executor.
    """

    def __init__(
        self, client: "Callable[[], AutoScalingClient]", group: str, clock: Clock, lock: FleetLock, shape: HostShape
    ) -> None:
        self._client = client
        self._group = group
        self._clock = clock
        self._lock = lock
        self._shape = shape
        self._desired = self._largest = 0
        self._looked_at = self._refused_at = float("-inf")
        self._seen: FleetStatus | None = None
        self._seen_at = float("-inf")

    def grow(self, works: Sequence[Work]) -> None:
        wanted = hosts_needed(works, self._shape)
        is_large_enough = self._is_fresh(self._looked_at) and self._desired >= min(wanted, self._largest)
        if not wanted or is_large_enough or self._is_fresh(self._refused_at):
            return
        try:
            if self._is_smaller(wanted):
                if not self._lock.take():
                    self._refused_at = self._clock.now()
                    return
                try:
                    self._raise(wanted)
                finally:
                    self._lock.release()
        except (ClientError, BotoCoreError, RequestError) as error:  # the packages wait, and the timer tries again
            log.warning("the fleet could not be enlarged, the timer will try again: %s", error)

    def _is_fresh(self, at: float) -> bool:
        return 0 <= self._clock.now() - at < LOOK_S

    def _is_smaller(self, wanted: int) -> bool:
        """Ask AWS for the group's size, and return whether it is smaller than `wanted` and can grow."""
        for _ in self._groups():
            return self._desired < min(wanted, self._largest)
        return False

    def _raise(self, wanted: int) -> None:
        # AWS sets the capacity whatever it was before. So read the capacity again while this process has the lock.
        # Otherwise the call could lower a capacity that another process has set meanwhile, and AWS would end instances
        # with running tasks.
        if self._is_smaller(wanted):
            wanted = min(wanted, self._largest)
            self._client().set_desired_capacity(
                AutoScalingGroupName=self._group, DesiredCapacity=wanted, HonorCooldown=False
            )
            self._desired = wanted

    def size(self, works: Sequence[Work]) -> FleetSize:
        for group in self._groups():
            return FleetSize(
                needed=min(hosts_needed(works, self._shape), group["MaxSize"]),
                wanted=group["DesiredCapacity"],
                running=frozenset(_in_service(group)),
                template=_template(group),
            )
        return FleetSize(needed=hosts_needed(works, self._shape))  # without its group, the fleet has no hosts

    def shortage(self) -> Shortage:
        return self._lock.shortage()

    def note(self, shortage: Shortage) -> None:
        self._lock.note(shortage)

    def status(self) -> FleetStatus | None:
        """See the port.

        While instances start, the message of the status says why the newest launch failed, or what this launch waits
        for. If no instance runs or starts, and the fleet must not grow now, the message says when it may grow again.
        """
        now = self._clock.now()
        if not self._is_fresh(self._seen_at):
            self._seen, self._seen_at = self._look(), now
        return self._seen

    def _look(self) -> FleetStatus | None:
        try:
            for group in self._groups():
                running = len(_in_service(group))
                starting = max(0, group["DesiredCapacity"] - running)
                message = self._failure() if starting else None if running else self._pause()
                return FleetStatus(running=running, starting=starting, message=message)
        except (ClientError, BotoCoreError) as error:  # clients only show the status to people, so answer without it
            log.warning("the fleet could not be looked at: %s", error)
        return None

    def _groups(self) -> Iterator[Any]:
        """Read the group from AWS: one group, or none if it does not exist."""
        found = self._client().describe_auto_scaling_groups(AutoScalingGroupNames=[self._group])
        for group in found["AutoScalingGroups"]:
            self._desired, self._largest = group["DesiredCapacity"], group["MaxSize"]
            self._looked_at = self._clock.now()
            yield group

    def _pause(self) -> str | None:
        left_s = self._lock.shortage().resumes_at - self._clock.now()
        return PAUSED.format(minutes=ceil(left_s / 60)) if left_s > 0 else None

    def _failure(self) -> str | None:
        found = self._client().describe_scaling_activities(AutoScalingGroupName=self._group, MaxRecords=ACTIVITIES)
        return launch_failure(found["Activities"])


def _in_service(group: Mapping[str, Any]) -> list[str]:
    """Return the ids of the instances that run. Their workers report this id as the name of their host (run.sh)."""
    return [each["InstanceId"] for each in group["Instances"] if each["LifecycleState"] == "InService"]


def _template(group: Mapping[str, Any]) -> str:
    """Return the versions of the launch templates from which the group makes new instances."""
    policy = group.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {})
    named = [policy, *policy.get("Overrides", [])]
    used = [each["LaunchTemplateSpecification"] for each in named if "LaunchTemplateSpecification" in each]
    return " ".join(sorted({f"{each.get('LaunchTemplateId', '')}:{each.get('Version', '')}" for each in used}))


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
