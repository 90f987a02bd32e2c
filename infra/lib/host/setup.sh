#!/usr/bin/env bash
# Runs once, at the first boot: installs the container engine, then the two units.
set -euo pipefail

# The newest release: without the option, dnf installs what was new when AWS built this machine image.
for attempt in 1 2 3 4 5; do
  if dnf install --assumeyes --quiet --releasever=latest docker; then
    break
  fi
  echo "cloudpar: docker did not install (attempt $attempt)" >&2
  sleep $((attempt * 5))
done
systemctl daemon-reload
systemctl enable --now docker.service
systemctl enable --now cloudpar-watch.service cloudpar-worker.service
