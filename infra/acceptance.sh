#!/usr/bin/env bash
# Accepts a release on a real AWS account, unattended: deploys a pool, runs a map, interrupts a spot instance during a
# second map, waits until the idle fleet has ended itself, deletes the pool, and looks for what is left. It takes about
# half an hour and costs about 0.10 USD (docs/first-deploy.md). It needs `make setup`, `npm ci`, and AWS's command line
# with an administrator's credentials. Docker is optional: without it, AWS builds the worker's images.
#
#   infra/acceptance.sh --region eu-central-1 [--env dev] [--without STEP]... [--set NAME=VALUE]...
#
# Each step prints one line with its duration; build/acceptance has its output. If a step fails, or a signal ends the
# script, it deletes the pool and looks for what is left. Steps that `--without` can leave out: map, interruption, idle.
# Exit codes: 0 if all steps passed, 1 if one failed, 2 if the script has refused to start, 130 or 143 after a signal.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/.venv/bin:$PATH
# Each step is a process group of its own, so that clean_up can end all its processes.
set -m
# They would have the maps run on another pool.
unset CLOUDPAR_ENDPOINT CLOUDPAR_TOKEN CLOUDPAR_PROFILE

say() { printf 'acceptance: %s\n' "$*"; }

# Ends the script before it has created anything.
refuse() {
  say "$*" >&2
  exit 2
}

environment=dev region=${AWS_REGION:-} without=' '
options=(--set maxInstances=2)
while (($#)); do
  (($# > 1)) || refuse "$1 needs a value; the comment at the top of $0 lists the options"
  case $1 in
    --env)
      [[ $2 == dev || $2 == staging ]] || refuse "--env $2: use dev or staging; in prod, the tables outlive the pool"
      environment=$2
      ;;
    --region) region=$2 ;;
    --without)
      [[ $2 == map || $2 == interruption || $2 == idle ]] ||
        refuse "there is no step $2 to leave out; there are map, interruption and idle"
      without+="$2 "
      ;;
    --set) options+=(--set "$2") ;;
    *) refuse "unknown option $1; the comment at the top of $0 lists the options" ;;
  esac
  shift 2
done
[[ $without != *' map '* ]] || options+=(--no-first-map)
[[ -n $region ]] || refuse 'no region: add --region, such as eu-central-1, or set AWS_REGION'
[[ -x .venv/bin/cloudpar ]] || refuse 'there is no .venv/bin/cloudpar: run "make setup"'
command -v aws >/dev/null || refuse "there is no command aws: install AWS's command line"
export AWS_REGION=$region AWS_DEFAULT_REGION=$region AWS_PAGER=

stack=Cloudpar-$environment
where=(--env "$environment" --region "$region")
out=$PWD/build/acceptance
# The pool's profile goes here, so that the programs of the person who runs this keep their own.
export XDG_CONFIG_HOME=$out/config
role=cloudpar-acceptance-$environment
template=
running=
deployed=

# Prints a value of a JSON file: value FILE KEY...
value() {
  python -c 'import json, sys
found = json.load(open(sys.argv[1]))
for key in sys.argv[2:]: found = found[key]
print(found if found is not None else "")' "$@"
}

status() {
  cloudpar status "${where[@]}" --json >"$out/status.json"
}

# Whether there is no stack. Any other failure, such as missing credentials, says nothing about the stack.
absent() {
  local code=0
  status || code=$?
  ((code == 5)) # not found: sdk/python/cloudpar/cli/exit_codes.py
}

# Looks several times, until a command succeeds: await LOOKS COMMAND...
await() {
  local looks=$1
  shift
  until "$@"; do
    ((looks -= 1)) || return 1
    sleep "${CLOUDPAR_LOOK_S:-10}"
  done
}

deploy() {
  cloudpar deploy "${where[@]}" --yes --json --account acceptance --hours 2 "${options[@]}" >"$out/deploy.json"
}

# Becomes a program whose tasks sleep, and that checks the results and the charge: run_map TASKS SECONDS
run_map() {
  CLOUDPAR_PROFILE=$(value "$out/deploy.json" profile)
  export CLOUDPAR_PROFILE
  exec python - "$@" <<'PY'
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
  local account instance arn experiment map_pid
  run_map 600 2 >"$out/interrupted-map.txt" 2>&1 &
  map_pid=$!
  # A step is a shell of its own, so this runs at its end, also if it fails.
  # shellcheck disable=SC2064  # the pid is the one of now
  trap "kill $map_pid 2>/dev/null || true; remove_experiment" EXIT
  await 60 spot_instance >"$out/instance.txt"
  instance=$(tail -n 1 "$out/instance.txt")
  account=$(value "$out/deploy.json" account)
  arn=arn:aws:ec2:$region:$account:instance/$instance
  aws iam create-role --role-name "$role" --output json --assume-role-policy-document \
    '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",
      "Principal": {"Service": "fis.amazonaws.com"}}]}'
  aws iam put-role-policy --role-name "$role" --policy-name interrupt --policy-document \
    "{\"Version\": \"2012-10-17\", \"Statement\": [
      {\"Effect\": \"Allow\", \"Action\": \"ec2:DescribeInstances\", \"Resource\": \"*\"},
      {\"Effect\": \"Allow\", \"Action\": \"ec2:SendSpotInstanceInterruptions\", \"Resource\": \"$arn\"}]}"
  # IAM needs some seconds until other services see a new role.
  await 6 make_template "arn:aws:iam::$account:role/$role" "$arn"
  experiment=$(aws fis start-experiment --experiment-template-id "$template" --output text --query experiment.id)
  say "experiment $experiment interrupts $instance"
  await 60 interrupted "$experiment"
  wait "$map_pid" || {
    cat "$out/interrupted-map.txt"
    return 1
  }
  await 60 gone "$instance"
}

make_template() {
  template=$(aws fis create-experiment-template --output text --query experimentTemplate.id \
    --description 'Cloud Parallelizer: one spot interruption' --role-arn "$1" --stop-conditions source=none \
    --targets "{\"one\": {\"resourceType\": \"aws:ec2:spot-instance\", \"resourceArns\": [\"$2\"],
      \"selectionMode\": \"ALL\"}}" \
    --actions '{"interrupt": {"actionId": "aws:ec2:send-spot-instance-interruptions",
      "parameters": {"durationBeforeInterruption": "PT2M"}, "targets": {"SpotInstances": "one"}}}')
}

# Whether an experiment has sent its interruption. If it has failed, the step fails: without an interruption the map
# passes as well, and the idle instance ends later.
interrupted() {
  local state
  state=$(aws fis get-experiment --id "$1" --output text --query 'experiment.state.[status, reason]') || return 1
  case $state in
    completed*) return 0 ;;
    failed* | stopped* | cancelled*)
      echo "experiment $1: $state"
      exit 1
      ;;
    *) return 1 ;;
  esac
}

remove_experiment() {
  if [[ -n $template ]]; then
    aws fis delete-experiment-template --id "$template" || true # costs nothing
  fi
  if aws iam get-role --role-name "$role" >/dev/null 2>&1; then
    aws iam delete-role-policy --role-name "$role" --policy-name interrupt || true
    aws iam delete-role --role-name "$role" || true # leftovers would find it
  fi
}

empty() {
  status && [[ $(value "$out/status.json" fleet desired) == 0 && $(value "$out/status.json" fleet running) == 0 ]]
}

idle() {
  await 120 empty
}

# Deletes the stack, and notes its resources before. `set -e` has no effect here when clean_up calls it.
destroy() {
  aws cloudformation list-stack-resources --stack-name "$stack" --output text \
    --query 'StackResourceSummaries[?PhysicalResourceId].[ResourceType, PhysicalResourceId]' >"$out/listed.txt" &&
    mv "$out/listed.txt" "$out/resources.txt"
  cloudpar destroy "${where[@]}" --yes --json >"$out/destroy.json"
}

# Prints the names of a resource and of what it keeps running: look TYPE ID. If the resource does not exist, it prints
# nothing or fails.
look() {
  local print=(--output text --query)
  case $1 in
    AWS::AutoScaling::AutoScalingGroup)
      aws autoscaling describe-auto-scaling-groups --auto-scaling-group-names "$2" \
        "${print[@]}" 'AutoScalingGroups[].AutoScalingGroupName' &&
        aws ec2 describe-instances "${print[@]}" 'Reservations[].Instances[].InstanceId' --filters \
          "Name=tag:aws:autoscaling:groupName,Values=$2" \
          'Name=instance-state-name,Values=pending,running,stopping,stopped'
      ;;
    AWS::DynamoDB::Table) aws dynamodb describe-table --table-name "$2" "${print[@]}" Table.TableName ;;
    AWS::EC2::VPC) aws ec2 describe-vpcs --vpc-ids "$2" "${print[@]}" 'Vpcs[].VpcId' ;;
    AWS::IAM::Role) aws iam get-role --role-name "$2" "${print[@]}" Role.RoleName ;;
    AWS::Lambda::Function)
      aws lambda get-function-configuration --function-name "$2" "${print[@]}" FunctionName
      ;;
    AWS::Logs::LogGroup)
      aws logs describe-log-groups --log-group-name-prefix "$2" "${print[@]}" 'logGroups[].logGroupName'
      ;;
    AWS::S3::Bucket) aws s3api head-bucket --bucket "$2" >/dev/null && echo "$2" ;;
    AWS::SQS::Queue)
      aws sqs get-queue-attributes --queue-url "$2" --attribute-names QueueArn "${print[@]}" Attributes.QueueArn
      ;;
    AWS::SSM::Parameter) aws ssm get-parameter --name "$2" "${print[@]}" Parameter.Name ;;
    AWS::SecretsManager::Secret)
      # A secret that is going to be deleted can still be described; it costs nothing.
      aws secretsmanager describe-secret --secret-id "$2" "${print[@]}" "(!DeletedDate && Name) || ''"
      ;;
    *) ;; # costs nothing, or cannot outlive the resources above
  esac
}

# Prints a line for each resource that costs money and is left, or of which AWS does not say whether it is left.
report() {
  local type id found
  while read -r type id; do
    if ! found=$(look "$type" "$id" 2>"$out/look.txt"); then
      # The codes of the services end so, for example NoSuchEntity and InvalidVpcID.NotFound.
      grep -qE '\((404|[A-Za-z.]*(NotFound|NoSuch|NonExistent|DoesNotExist)[A-Za-z]*)\)' "$out/look.txt" ||
        echo "unknown: $type $id: $(tail -n 1 "$out/look.txt")"
    elif [[ -n $found ]]; then
      echo "left: $type ${found//[$'\t\n']/ }"
    fi
  done < <(echo "AWS::IAM::Role $role" && cat "$out/resources.txt")
}

nothing_left() {
  local found
  found=$(report)
  echo "$found"
  [[ -z $found ]]
}

# Fails if anything that costs money is left of the stack, or if an instance of the fleet still runs.
leftovers() {
  if [[ ! -s $out/resources.txt ]]; then
    echo "AWS has not listed the resources of $stack, so look for them by hand"
    return 1
  fi
  # AWS deletes some resources only a little later.
  await 6 nothing_left
}

# Runs a step, its output in a file: step NAME
step() {
  local began=$SECONDS code=0
  if [[ $without == *" $1 "* ]]; then
    say "$1: left out"
    return
  fi
  # In the background, since `set -e` has no effect on a function that a condition calls.
  ("$1") </dev/null >"$out/$1.txt" 2>&1 &
  running=$!
  wait "$running" || code=$?
  running=
  if ((code)); then
    say "$1: FAILED after $((SECONDS - began)) s; its last lines:"
    tail -n 15 "$out/$1.txt"
    return 1
  fi
  say "$1: ok, $((SECONDS - began)) s"
}

clean_up() {
  local code=$?
  trap - EXIT
  # Neither a second signal nor a closed output must keep the pool from being deleted.
  trap '' HUP INT PIPE TERM
  set +e
  if [[ -n $running ]]; then
    kill -- "-$running"
    wait "$running"
  fi
  if [[ -n $deployed ]]; then
    if absent 2>/dev/null; then
      say "there is no $stack to delete"
    else
      say 'the pool is deleted because not all steps have passed'
      if step destroy; then
        step leftovers
      else
        say "delete it by hand: cloudpar destroy ${where[*]}"
      fi
    fi
  fi
  exit "$code"
}

rm -rf "$out"
mkdir -p "$out"
if ! absent 2>"$out/status.txt"; then
  if [[ -s $out/status.json ]]; then
    refuse "$stack exists in $region, and this script would delete it: choose another --env or --region, or delete it" \
      "by cloudpar destroy ${where[*]}"
  fi
  refuse "cannot see whether $stack exists in $region: $(<"$out/status.txt")"
fi
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
say "$stack in $region; output in $out"
deployed=yes
step deploy
step map
step interruption
step idle
step destroy
deployed=
step leftovers
without=${without# }
say "all steps passed${without:+, without ${without% }}"
