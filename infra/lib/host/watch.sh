#!/usr/bin/env bash
# Checks every few seconds whether this instance is about to end: by a spot interruption (2 minutes ahead), after a
# rebalance recommendation (perhaps earlier), or because the Auto Scaling group terminates it (a lifecycle hook waits).
# In each case this script stops the worker's unit, which sends SIGTERM to the worker. The worker then takes no more
# tasks, finishes the running ones and publishes their results. If the group terminates the instance, this script
# extends the hook meanwhile, and completes the hook at the end. If there is only a recommendation, the script asks the
# group to replace the instance once the worker is drained.
set -uo pipefail
: "${CLOUDPAR_REGION:?}" "${CLOUDPAR_GROUP:?}" "${CLOUDPAR_HOOK:?}"
metadata=${CLOUDPAR_METADATA:-http://169.254.169.254/latest}
look_s=${CLOUDPAR_LOOK_S:-5}
heartbeat_s=${CLOUDPAR_HEARTBEAT_S:-60}
unit=cloudpar-worker.service
session=

# A session of the metadata service outlasts many checks. After a session has expired, the next check opens another one.
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

# Prints why the instance will end; fails if it will not.
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
  # open_session runs in this shell, because the subshell of a command substitution would lose the session.
  get instance-id >/dev/null || open_session
done

echo "cloudpar: this instance will end ($reason): the worker drains"
# systemd does not restart a unit that was stopped.
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
    # The group may have found no replacement for this instance. Without this the drained instance would stay in the
    # group, idle, and cost money.
    aws autoscaling terminate-instance-in-auto-scaling-group --region "$CLOUDPAR_REGION" --instance-id "$instance" \
      --no-should-decrement-desired-capacity >/dev/null && asked=yes
  fi
  sleep "$look_s"
  get instance-id >/dev/null || open_session
done
echo 'cloudpar: the worker is drained, and the group knows'
