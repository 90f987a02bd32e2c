#!/usr/bin/env bash
# Runs once, at the first boot: starts the unit that ends a host without work, installs the container engine, and starts
# the worker. If anything fails after the first unit runs, that unit ends this host.
set -euo pipefail

systemctl daemon-reload
systemctl enable --now cloudpar-watch.service
# The newest release: without the option, dnf installs what was new when AWS built this machine image.
for attempt in 1 2 3 4 5; do
  if dnf install --assumeyes --quiet --releasever=latest docker; then
    break
  fi
  echo "cloudpar: docker did not install (attempt $attempt)" >&2
  sleep $((attempt * 5))
done
systemctl enable --now docker.service
systemctl enable --now cloudpar-worker.service
