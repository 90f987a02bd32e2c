#!/usr/bin/env bash
# Puts together what a Lambda function runs, without Docker: bundle.sh OUT [PLATFORM [PYTHON]]
#   OUT       a folder; what was in it is replaced
#   PLATFORM  as uv names it (default: aarch64-manylinux2014), or "host" for this machine and Python
#   PYTHON    minor version (default: 3.13)
# The same sources and the same requirements/functions.txt make the same bytes on every machine.
set -euo pipefail
export UV_SYSTEM_CERTS=1
cd "$(dirname "$0")/.."

out=${1:?usage: functions/bundle.sh OUT [PLATFORM [PYTHON]]}
platform=${2:-aarch64-manylinux2014}
uv=${UV:-.venv/bin/uv}
if [ ! -x "$uv" ]; then
    echo "bundle: there is no uv at $uv: run 'make setup', or name one by UV=/path/to/uv" >&2
    exit 1
fi

options=(--python "$(command -v .venv/bin/python || command -v python3)")
if [ "$platform" != host ]; then
    options+=(--python-platform "$platform" --python-version "${3:-3.13}")
fi

export PYTHONHASHSEED=0 SOURCE_DATE_EPOCH=315532800 # 1980-01-01, the first day that a zip file knows
umask 022
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"$uv" pip install --quiet --target "$fresh" --require-hashes --only-binary :all: --no-deps --link-mode copy \
    "${options[@]}" --requirements requirements/functions.txt

# Keep only the AWS services that the functions call. Remove the packages' programs, and files that name a path or a
# time: these would make the bytes differ.
services='autoscaling dynamodb s3 secretsmanager sqs ssm sts'
for folder in "$fresh"/botocore/data/*/; do
    case " $services " in *" $(basename "$folder") "*) ;; *) rm -rf "$folder" ;; esac
done
rm -rf "${fresh:?}/bin" "$fresh/.lock" "$fresh/botocore/docs/examples"
find "$fresh" \( -name __pycache__ -o -name tests -o -name RECORD -o -name INSTALLER -o -name REQUESTED \
    -o -name direct_url.json -o -name uv_cache.json \) -prune -exec rm -rf {} +

for package in sdk/protocol/cloudpar_protocol functions/cloudpar_master functions/cloudpar_handlers; do
    (cd "$(dirname "$package")" && find "$(basename "$package")" -name '*.py' -print0) |
        tar -C "$(dirname "$package")" --null -T - -cf - | tar -C "$fresh" -xf -
done
rm -rf "$fresh/cloudpar_master/server" "$fresh/cloudpar_master/__main__.py" "$fresh/cloudpar_protocol/transport"

find "$fresh" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
# The same day as SOURCE_DATE_EPOCH, in options that the touch of macOS knows, too.
TZ=UTC find "$fresh" -exec touch -h -t 198001010000.00 {} +
rm -rf "$out"
mkdir -p "$(dirname "$out")"
cp -a "$fresh" "$out"
