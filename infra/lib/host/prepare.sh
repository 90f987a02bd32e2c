#!/usr/bin/env bash
# Runs before each start of the worker: stores the worker token where only root can read it, makes the folder for the
# worker's signs of life, adds the firewall rule, pulls the worker's image.
set -euo pipefail
: "${CLOUDPAR_REGION:?}" "${CLOUDPAR_TOKEN_SECRET:?}" "${CLOUDPAR_IMAGE:?}"
token=${CLOUDPAR_TOKEN_FILE:-/run/cloudpar/worker-token}

umask 077
mkdir -p "$(dirname "$token")"
aws secretsmanager get-secret-value --region "$CLOUDPAR_REGION" --secret-id "$CLOUDPAR_TOKEN_SECRET" \
  --query SecretString --output text >"$token.new"
mv "$token.new" "$token"

# The agent's user (worker/entrypoint.py) shows here whether it has work; watch.sh looks at it.
signs=${CLOUDPAR_SIGNS:-/run/cloudpar/signs}
mkdir -p "$signs"
chown 10001:10001 "$signs"

# The metadata service answers across one network hop, and containers are two hops away. In addition, the firewall
# refuses connections from containers to the metadata service.
rule=(DOCKER-USER --destination 169.254.169.254 --protocol tcp --jump REJECT --reject-with tcp-reset)
if ! iptables --wait --check "${rule[@]}" 2>/dev/null && ! iptables --wait --insert "${rule[@]}"; then
  echo "cloudpar: no firewall before the instance metadata: the hop limit alone keeps containers from them" >&2
fi

registry=${CLOUDPAR_IMAGE%%/*}
if [[ $registry == *.dkr.ecr.*.amazonaws.com* ]]; then
  region=${registry#*.dkr.ecr.}
  aws ecr get-login-password --region "${region%%.*}" | docker login --username AWS --password-stdin "$registry"
fi
docker pull --quiet "$CLOUDPAR_IMAGE"
docker rm --force cloudpar-worker >/dev/null 2>&1 || true
