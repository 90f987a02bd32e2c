#!/usr/bin/env bash
# Accepts a release on a real AWS account, unattended: deploys a pool, runs a map, interrupts a spot instance during a
# second map, waits until the idle fleet has ended itself, deletes the pool, and looks for what is left. It takes about
# half an hour and costs about 0.10 USD (docs/first-deploy.md). It needs `make setup`, `npm ci`, and AWS's command line
# with an administrator's credentials. Docker is optional: without it, AWS builds the worker's images.
#
#   infra/acceptance.sh --region eu-central-1 [--env dev] [--without STEP]... [--set NAME=VALUE]...
#
# Each step prints one line with its duration; build/acceptance has its output. If a step fails, the script deletes the
# pool and exits with 1. Steps that `--without` can leave out: map, interruption, idle.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/.venv/bin:$PATH

environment=dev region=${AWS_REGION:-}
without=() settings=()
while (($#)); do
  if (($# < 2)); then
    echo "acceptance: $1 needs a value; the comment at the top of $0 lists the options" >&2
    exit 2
  fi
  case $1 in
    --env) environment=$2 ;;
    --region) region=$2 ;;
    --without)
      case $2 in
        map | interruption | idle) without+=("$2") ;;
        *)
          echo "acceptance: there is no step $2 to leave out; there are map, interruption and idle" >&2
          exit 2
          ;;
      esac
      ;;
    --set) settings+=(--set "$2") ;;
    *)
      echo "acceptance: unknown option $1; the comment at the top of $0 lists the options" >&2
      exit 2
      ;;
  esac
  shift 2
done
: "${region:?acceptance: name a region: --region, or AWS_REGION}"
export AWS_REGION=$region AWS_DEFAULT_REGION=$region AWS_PAGER=

stack=Cloudpar-$environment
out=$PWD/build/acceptance
# The pool's profile goes here, so that the programs of the person who runs this keep their own.
export XDG_CONFIG_HOME=$out/config
role=cloudpar-acceptance-$environment
template=
deployed=

say() { printf 'acceptance: %s\n' "$*"; }

# Prints a value of a JSON file: value FILE KEY...
value() {
  python -c 'import json, sys
found = json.load(open(sys.argv[1]))
for key in sys.argv[2:]: found = found[key]
print(found if found is not None else "")' "$@"
}

status() {
  cloudpar status --env "$environment" --region "$region" --json >"$out/status.json"
}

# Waits until a command succeeds: await SECONDS COMMAND...
await() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < until)) || return 1
    sleep "${CLOUDPAR_LOOK_S:-10}"
  done
}

deploy() {
  cloudpar deploy --env "$environment" --region "$region" --yes --json --account acceptance --hours 2 \
    --set maxInstances=2 "${settings[@]}" "${first_map[@]}" >"$out/deploy.json"
  aws cloudformation list-stack-resources --stack-name "$stack" --output json \
    --query 'StackResourceSummaries[].[ResourceType,PhysicalResourceId]' >"$out/resources.json"
}

# Runs tasks that sleep, and checks the results and the charge: run_map TASKS SECONDS
run_map() {
  CLOUDPAR_PROFILE=$(value "$out/deploy.json" profile) python - "$@" <<'PY'
import sys
import time

from cloudpar import Pool

tasks, seconds = int(sys.argv[1]), float(sys.argv[2])


def square(number):
    time.sleep(seconds)
    return number * number


with Pool() as pool:
    found = list(pool.map(square, range(tasks)))
    report = pool.last_report
assert found == [number * number for number in range(tasks)], "results are missing or wrong"
assert report.execute_s >= tasks * seconds * 0.99, f"only {report.execute_s} s were charged"
print(f"{tasks} results; {report.execute_s:.0f} s of compute time were charged")
PY
}

map() {
  run_map 200 1
}

# The id of a spot instance that is in service.
spot_instance() {
  status && python -c 'import json, sys
fleet = json.load(open(sys.argv[1]))["fleet"]
found = [each["id"] for each in fleet["instances"] if each["spot"] and each["state"] == "InService"]
sys.exit(not found or print(found[0]))' "$out/status.json"
}

gone() {
  local found
  found=$(aws ec2 describe-instances --instance-ids "$1" --output text \
    --query 'Reservations[].Instances[].State.Name') && [[ $found == terminated || -z $found ]]
}

# Interrupts one spot instance by AWS's Fault Injection Service while a map runs. The map must lose nothing.
interruption() {
  local account instance experiment map_pid
  run_map 600 2 >"$out/interrupted-map.txt" 2>&1 &
  map_pid=$!
  # A step is a shell of its own, so this runs at its end, also if it fails.
  # shellcheck disable=SC2064  # the pid is the one of now
  trap "kill $map_pid 2>/dev/null; remove_experiment" EXIT
  await 600 spot_instance >"$out/instance.txt"
  instance=$(tail -n 1 "$out/instance.txt")
  account=$(value "$out/deploy.json" account)
  aws iam create-role --role-name "$role" --output json --assume-role-policy-document \
    '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",
      "Principal": {"Service": "fis.amazonaws.com"}}]}'
  aws iam put-role-policy --role-name "$role" --policy-name interrupt --policy-document \
    "{\"Version\": \"2012-10-17\", \"Statement\": [
      {\"Effect\": \"Allow\", \"Action\": \"ec2:DescribeInstances\", \"Resource\": \"*\"},
      {\"Effect\": \"Allow\", \"Action\": \"ec2:SendSpotInstanceInterruptions\",
       \"Resource\": \"arn:aws:ec2:$region:$account:instance/$instance\"}]}"
  # IAM needs some seconds until other services see a new role.
  await 60 make_template "arn:aws:iam::$account:role/$role" "arn:aws:ec2:$region:$account:instance/$instance"
  experiment=$(aws fis start-experiment --experiment-template-id "$template" --output text --query experiment.id)
  say "experiment $experiment interrupts $instance"
  wait "$map_pid"
  await 600 gone "$instance"
}

make_template() {
  template=$(aws fis create-experiment-template --output text --query experimentTemplate.id \
    --description 'Cloud Parallelizer: one spot interruption' --role-arn "$1" --stop-conditions source=none \
    --targets "{\"one\": {\"resourceType\": \"aws:ec2:spot-instance\", \"resourceArns\": [\"$2\"],
      \"selectionMode\": \"ALL\"}}" \
    --actions '{"interrupt": {"actionId": "aws:ec2:send-spot-instance-interruptions",
      "parameters": {"durationBeforeInterruption": "PT2M"}, "targets": {"SpotInstances": "one"}}}')
}

remove_experiment() {
  if [[ -n $template ]]; then
    aws fis delete-experiment-template --id "$template"
  fi
  if aws iam get-role --role-name "$role" >/dev/null 2>&1; then
    aws iam delete-role-policy --role-name "$role" --policy-name interrupt || true
    aws iam delete-role --role-name "$role"
  fi
}

empty() {
  status && [[ $(value "$out/status.json" fleet desired) == 0 && $(value "$out/status.json" fleet running) == 0 ]]
}

idle() {
  await 1200 empty
}

destroy() {
  cloudpar destroy --env "$environment" --region "$region" --yes --json >"$out/destroy.json"
}

# Whether a resource of the deleted stack still exists: exists TYPE ID
exists() {
  case $1 in
    AWS::AutoScaling::AutoScalingGroup)
      [[ -n $(aws autoscaling describe-auto-scaling-groups --auto-scaling-group-names "$2" --output text \
        --query 'AutoScalingGroups[].AutoScalingGroupName') ]]
      ;;
    AWS::DynamoDB::Table) aws dynamodb describe-table --table-name "$2" ;;
    AWS::EC2::VPC) aws ec2 describe-vpcs --vpc-ids "$2" ;;
    AWS::IAM::Role) aws iam get-role --role-name "$2" ;;
    AWS::Lambda::Function) aws lambda get-function --function-name "$2" ;;
    AWS::Logs::LogGroup)
      [[ -n $(aws logs describe-log-groups --log-group-name-prefix "$2" --output text \
        --query 'logGroups[].logGroupName') ]]
      ;;
    AWS::S3::Bucket) aws s3api head-bucket --bucket "$2" ;;
    AWS::SQS::Queue) aws sqs get-queue-attributes --queue-url "$2" ;;
    AWS::SSM::Parameter) aws ssm get-parameter --name "$2" ;;
    AWS::SecretsManager::Secret)
      # A secret that is going to be deleted can still be described; it costs nothing.
      [[ $(aws secretsmanager describe-secret --secret-id "$2" --output text --query DeletedDate) == None ]]
      ;;
    *) return 1 ;; # costs nothing, or cannot outlive the resources above
  esac
}

# Fails if anything that costs money is left of the stack, or if an instance of the fleet still runs.
leftovers() {
  local type id group found=()
  group=$(value "$out/deploy.json" outputs FleetGroup)
  while read -r type id; do
    if exists "$type" "$id" >/dev/null 2>&1; then
      found+=("$type $id")
    fi
  done < <(python -c 'import json, sys
for kind, name in json.load(open(sys.argv[1])): print(kind, name)' "$out/resources.json")
  while read -r id; do
    found+=("instance $id")
  done < <(aws ec2 describe-instances --output text --query 'Reservations[].[Instances[].InstanceId]' --filters \
    "Name=tag:aws:autoscaling:groupName,Values=$group" 'Name=instance-state-name,Values=pending,running,stopping,stopped')
  if ((${#found[@]})); then
    printf 'acceptance: left: %s\n' "${found[@]}"
    return 1
  fi
}

# Runs a step, its output in a file: step NAME
step() {
  local began=$SECONDS
  if [[ " ${without[*]} " == *" $1 "* ]]; then
    say "$1: left out"
    return
  fi
  # In the background, since `set -e` has no effect on a function that a condition calls.
  ("$1") >"$out/$1.txt" 2>&1 &
  if wait $!; then
    say "$1: ok, $((SECONDS - began)) s"
  else
    say "$1: FAILED after $((SECONDS - began)) s; its last lines:"
    tail -n 15 "$out/$1.txt"
    return 1
  fi
}

clean_up() {
  local code=$?
  trap - EXIT
  if [[ -n $deployed ]]; then
    say 'the pool is deleted because a step has failed'
    step destroy || say "delete it by hand: cloudpar destroy --env $environment --region $region"
  fi
  exit "$code"
}

rm -rf "$out"
mkdir -p "$out"
first_map=()
[[ " ${without[*]} " != *' map '* ]] || first_map=(--no-first-map)
if status 2>/dev/null; then
  say "$stack exists in $region: this script would delete it. Choose another --env or --region" >&2
  exit 2
fi
trap clean_up EXIT
say "$stack in $region; output in $out"
deployed=yes
step deploy
step map
step interruption
step idle
step destroy
deployed=
step leftovers
say "all steps passed${without[*]:+, without ${without[*]}}"
