#!/usr/bin/env bash
# Looks every few seconds whether this instance is about to end: a spot interruption (2 minutes ahead), a rebalance
# recommendation (perhaps earlier), or the Auto Scaling group taking it away (a lifecycle hook that waits for us).
# Each stops the worker's unit, that is, sends the worker SIGTERM: it takes no more work, finishes what runs and
# publishes it. The hook is kept waiting while it does, and completed when it has. After a mere recommendation the group
# is asked to replace the instance, unless it has begun to by itself.
set -uo pipefail
: "${CLOUDPAR_REGION:?}" "${CLOUDPAR_GROUP:?}" "${CLOUDPAR_HOOK:?}"
metadata=${CLOUDPAR_METADATA:-http://169.254.169.254/latest}
look_s=${CLOUDPAR_LOOK_S:-5}
heartbeat_s=${CLOUDPAR_HEARTBEAT_S:-60}
unit=cloudpar-worker.service
session=

# A session outlives many looks; when one has ended, the look after it opens another.
open_session() {
  session=$(curl --silent --fail --max-time 2 --request PUT \
    --header 'X-aws-ec2-metadata-token-ttl-seconds: 21600' "$metadata/api/token")
}

get() {
  curl --silent --fail --max-time 2 --header "X-aws-ec2-metadata-token: $session" "$metadata/meta-data/$1"
}

taken_away() {
  [[ $(get autoscaling/target-lifecycle-state) == Terminated ]]
}

# Why the instance will end; fails while it will not.
ending() {
  if get spot/instance-action >/dev/null; then
    echo 'spot interruption'
  elif taken_away; then
    echo 'taken away by the group'
  elif get events/recommendations/rebalance >/dev/null; then
    echo 'rebalance recommendation'
  else
    return 1
  fi
}

drained() {
  [[ $(systemctl show --property ActiveState --value "$unit") =~ ^(inactive|failed)$ ]]
}

lifecycle() {
  aws autoscaling "$1" --region "$CLOUDPAR_REGION" --auto-scaling-group-name "$CLOUDPAR_GROUP" \
    --lifecycle-hook-name "$CLOUDPAR_HOOK" --instance-id "$instance" "${@:2}"
}

until open_session && instance=$(get instance-id); do
  sleep "$look_s"
done

until reason=$(ending); do
  sleep "$look_s"
  # In this shell, not in the one that the substitution ran in.
  get instance-id >/dev/null || open_session
done

echo "cloudpar: this instance will end ($reason): the worker drains"
# It is not started again: a unit that was stopped stays so.
systemctl stop --no-block "$unit"

beat_s=0
asked=
while true; do
  if taken_away; then
    if drained; then
      lifecycle complete-lifecycle-action --lifecycle-action-result CONTINUE && break
    elif ((SECONDS >= beat_s)); then
      lifecycle record-lifecycle-action-heartbeat
      beat_s=$((SECONDS + heartbeat_s))
    fi
  elif [[ -z $asked && $reason == 'rebalance recommendation' ]] && drained; then
    # The group may have found no replacement: an instance that does nothing must not hold its place, and cost.
    aws autoscaling terminate-instance-in-auto-scaling-group --region "$CLOUDPAR_REGION" --instance-id "$instance" \
      --no-should-decrement-desired-capacity >/dev/null && asked=yes
  fi
  sleep "$look_s"
  get instance-id >/dev/null || open_session
done
echo 'cloudpar: the worker is drained, and the group knows'
