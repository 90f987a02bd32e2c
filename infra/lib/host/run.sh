#!/usr/bin/env bash
# Runs the worker in the foreground. The container starts as root with three capabilities, which its entry point drops.
set -euo pipefail
: "${CLOUDPAR_REGION:?}" "${CLOUDPAR_ENDPOINT:?}" "${CLOUDPAR_IMAGE:?}" "${CLOUDPAR_PYTHON:?}" "${CLOUDPAR_LOG_GROUP:?}"
token=${CLOUDPAR_TOKEN_FILE:-/run/cloudpar/worker-token}
signs=${CLOUDPAR_SIGNS:-/run/cloudpar/signs}
metadata=${CLOUDPAR_METADATA:-http://169.254.169.254/latest}

session=$(curl --silent --fail --max-time 2 --request PUT --header 'X-aws-ec2-metadata-token-ttl-seconds: 60' \
  "$metadata/api/token")
instance=$(curl --silent --fail --max-time 2 --header "X-aws-ec2-metadata-token: $session" \
  "$metadata/meta-data/instance-id")
# A quarter of the memory is for temporary files. `exec`, since tasks' compilers (numba, torch) load files from there.
tmp_kib=$(awk '/^MemTotal:/ { print int($2 / 4) }' /proc/meminfo)
# 512 processes for each executor, of which there is one for each processor, and 1,024 for the worker itself.
processes=$((512 * ($(nproc) + 2)))

# In the bridge network the container is two hops away from the metadata service, which answers across one hop only. So
# the container gets no AWS credentials.
# The worker reports the name of its host to the master, which compares it with the ids of the group's instances.
exec docker run --rm --name cloudpar-worker --hostname "$instance" --network bridge \
  --read-only --cap-drop ALL --cap-add SETUID --cap-add SETGID --cap-add KILL \
  --security-opt no-new-privileges --pids-limit "$processes" --ulimit nofile=65536:65536 --shm-size 256m \
  --tmpfs "/tmp:rw,nosuid,nodev,exec,mode=1777,size=${tmp_kib}k" \
  --mount "type=bind,source=$token,target=/run/cloudpar/worker-token,readonly" \
  --mount "type=bind,source=$signs,target=/run/cloudpar/signs" \
  --env "CLOUDPAR_ENDPOINT=$CLOUDPAR_ENDPOINT" --env "CLOUDPAR_PYTHON=$CLOUDPAR_PYTHON" \
  --log-driver awslogs --log-opt "awslogs-region=$CLOUDPAR_REGION" --log-opt "awslogs-group=$CLOUDPAR_LOG_GROUP" \
  --log-opt "awslogs-stream=$instance" --log-opt mode=non-blocking \
  "$CLOUDPAR_IMAGE"
