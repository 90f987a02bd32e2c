#!/usr/bin/env bash
# install.sh TARGET WHEEL USER_REQUIREMENTS VERSION... For each version of Python, makes TARGET/VERSION, an environment
# with the worker in it. worker/Dockerfile runs this script. Tests also run it, with the interpreters of the machine
# (UV_PYTHON_DOWNLOADS=never).
set -euo pipefail
export UV_SYSTEM_CERTS=1
target=$1 wheel=$2 user_requirements=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)

for version in "$@"; do
  environment=$target/$version
  uv venv --quiet --python "$version" "$environment"
  export VIRTUAL_ENV=$environment
  # Install first the packages that the worker needs, by hash, then the worker itself, then the user's packages, which
  # may not change the versions of the worker's packages.
  uv pip install --quiet --compile-bytecode --require-hashes --requirement "$here/requirements.txt"
  uv pip install --quiet --compile-bytecode --no-deps "$wheel"
  if [[ -s $user_requirements ]]; then
    uv pip install --quiet --compile-bytecode --constraint "$here/requirements.txt" --requirement "$user_requirements"
  fi
  "$environment/bin/python" -P -c 'import cloudpar_worker.shell.agent, cloudpar_worker.zygote.__main__'
  echo "install: $("$environment/bin/python" --version) in $environment"
done
