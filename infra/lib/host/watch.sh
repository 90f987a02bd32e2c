#!/usr/bin/env bash
# Checks every few seconds whether this instance is about to end: by a spot interruption (2 minutes ahead), after a
# rebalance recommendation (perhaps earlier), or because the Auto Scaling group terminates it (a lifecycle hook waits).
# It also ends an instance whose worker has had no work for a while (idle) or does not reach the master (silent), since
# no other part of the deployment ends instances. In each case this script stops the worker's unit, which sends SIGTERM
# to the worker. The worker then takes no more tasks, finishes the running ones and publishes their results. If the group
# terminates the instance, this script extends the hook meanwhile, and completes the hook at the end. If there is only a
# recommendation, the script asks the group to replace the instance once the worker is drained. An idle or silent
# instance is not replaced: the group then wants one instance less.
set -uo pipefail
: "${CLOUDPAR_REGION:?}" "${CLOUDPAR_GROUP:?}" "${CLOUDPAR_HOOK:?}" "${CLOUDPAR_IDLE_S:?}"
metadata=${CLOUDPAR_METADATA:-http://169.254.169.254/latest}
look_s=${CLOUDPAR_LOOK_S:-5}
heartbeat_s=${CLOUDPAR_HEARTBEAT_S:-60}
# The worker touches a file when the master answers (heard), and one while it has a lease (leased).
signs=${CLOUDPAR_SIGNS:-/run/cloudpar/signs}
silent_s=${CLOUDPAR_SILENT_S:-600}
# So many failed calls in a row mean that this instance cannot reach AWS, or may not end itself.
tries=${CLOUDPAR_TRIES:-60}
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

# For how many seconds the worker has not touched a file. One that does not exist counts from the start of this script.
untouched_s() {
  echo $(($(date +%s) - $(stat --format %Y "$signs/$1" 2>/dev/null || echo "$began")))
}

silent() {
  (($(untouched_s heard) >= silent_s && $(untouched_s leased) >= silent_s))
}

idle() {
  [[ -e $signs/heard ]] && (($(untouched_s leased) >= CLOUDPAR_IDLE_S))
}

# Prints why the instance will end; fails if it will not.
ending() {
  if get spot/instance-action >/dev/null; then
    echo 'spot interruption'
  elif taken_away; then
    echo 'taken away by the group'
  elif get events/recommendations/rebalance >/dev/null; then
    echo 'rebalance recommendation'
  elif silent; then
    echo 'silent'
  elif idle; then
    echo 'idle'
  else
    return 1
  fi
}

# A silent worker has no lease, so nothing waits for its end, which may take long.
drained() {
  [[ $reason == silent || $(systemctl show --property ActiveState --value "$unit") =~ ^(inactive|failed)$ ]]
}

lifecycle() {
  aws autoscaling "$1" --region "$CLOUDPAR_REGION" --auto-scaling-group-name "$CLOUDPAR_GROUP" \
    --lifecycle-hook-name "$CLOUDPAR_HOOK" --instance-id "$instance" "${@:2}"
}

# Asks the group to end this instance. $1 says whether the group then wants one instance less.
end() {
  aws autoscaling terminate-instance-in-auto-scaling-group --region "$CLOUDPAR_REGION" --instance-id "$instance" \
    "--$1-decrement-desired-capacity" >/dev/null
}

began=$(date +%s)
until open_session && instance=$(get instance-id); do
  sleep "$look_s"
done
# From here on this script ends an instance that does not work; user-data.ts has scheduled this for the case that it
# never runs.
shutdown -c

heard=
until reason=$(ending); do
  if [[ -z $heard && -e $signs/heard ]]; then
    heard=yes
    # The time until here was the boot, and not idle.
    began=$(date +%s)
  fi
  sleep "$look_s"
  # open_session runs in this shell, because the subshell of a command substitution would lose the session.
  get instance-id >/dev/null || open_session
done

echo "cloudpar: this instance will end ($reason): the worker drains"
# systemd does not restart a unit that was stopped.
systemctl stop --no-block "$unit"

beat_s=0
asked=
failed=0
while true; do
  if taken_away; then
    if drained; then
      lifecycle complete-lifecycle-action --lifecycle-action-result CONTINUE && break
    elif ((SECONDS >= beat_s)); then
      lifecycle record-lifecycle-action-heartbeat
      beat_s=$((SECONDS + heartbeat_s))
    fi
  elif [[ -z $asked ]] && drained; then
    case $reason in
      # The group may have found no replacement for this instance. Without this the drained instance would stay in the
      # group, idle, and cost money.
      'rebalance recommendation') end no-should && asked=yes ;;
      silent | idle)
        if end should; then
          asked=yes
        elif ((++failed >= tries)); then
          # The group notices that the instance does not run any more, and replaces it.
          echo 'cloudpar: the group cannot be reached: this instance switches itself off'
          systemctl poweroff
          exit
        fi
        ;;
    esac
  fi
  sleep "$look_s"
  get instance-id >/dev/null || open_session
done
echo 'cloudpar: the worker is drained, and the group knows'
