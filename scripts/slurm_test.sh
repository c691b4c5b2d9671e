#!/usr/bin/env bash
# 'posattn submit' against a real Slurm: starts munged, slurmctld and four slurmd of this machine in a
# temporary folder, submits a small grid as arrays, and compares the results with those of one process.
# One array is cut by its time limit, of one a process is killed, of one the node goes down, and one
# gets nowhere.
#   scripts/install_packages full
#   scripts/slurm_test.sh [build/release/posattn]
# About five minutes, for Slurm lets a job that went back wait for two. KEEP=1 leaves the folder.
set -euo pipefail

program=$(realpath "${1:-build/release/posattn}")
for tool in munged slurmctld slurmd sbatch; do
  PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || {
    echo "error: no $tool; scripts/install_packages full has it" >&2
    exit 1
  }
done
export PATH=$PATH:/usr/sbin

folder=$(mktemp -d /tmp/posattn-slurm-XXXXXX)
export SLURM_CONF=$folder/slurm.conf # never that of a cluster this machine belongs to
children=()
cleanup() {
  scancel --user "$(id -un)" 2>/dev/null || true
  for _ in $(seq 20); do
    [[ -n "$(squeue -h 2>/dev/null)" ]] || break
    sleep 1
  done
  for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
  sleep 2
  for child in "${children[@]}"; do kill -9 "$child" 2>/dev/null || true; done
  wait 2>/dev/null || true
  if [[ -n "${KEEP:-}" ]]; then echo "kept: $folder"; else rm -rf "$folder"; fi
}
trap cleanup EXIT
fail() {
  echo "FAILED: $1" >&2
  tail -n 30 "$folder"/*/slurm/*.log "$folder"/slurmctld.log >&2 || true
  exit 1
}

mkdir "$folder"/{munge,state,spool}
chmod 755 "$folder" && chmod 700 "$folder/munge"
dd if=/dev/urandom of="$folder/munge/key" bs=128 count=1 status=none
chmod 400 "$folder/munge/key"
chmod 711 "$folder/munge"
munged --foreground --force --key-file "$folder/munge/key" --socket "$folder/munge/socket" \
  --pid-file "$folder/munge/pid" --log-file "$folder/munge/log" --seed-file "$folder/munge/seed" \
  >"$folder/munged.out" 2>&1 &
children+=($!)

host=$(hostname -s)
cat >"$folder/slurm.conf" <<END
ClusterName=posattn
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
SlurmctldPort=26817
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=10
MinJobAge=3600
NodeName=sound[0-1],frail[0-1] NodeHostname=$host NodeAddr=127.0.0.1 Port=[26818-26821] CPUs=4 State=UNKNOWN
PartitionName=sound Nodes=sound[0-1] Default=YES MaxTime=INFINITE State=UP
PartitionName=frail Nodes=frail[0-1] MaxTime=INFINITE State=UP
END
sleep 1
slurmctld -D >"$folder/slurmctld.out" 2>&1 &
children+=($!)
declare -A daemon # of each node
for node in sound0 sound1 frail0 frail1; do
  mkdir "$folder/spool/$node"
  slurmd -D -N "$node" >"$folder/slurmd-$node.out" 2>&1 &
  daemon[$node]=$!
  children+=($!)
done
all_idle() { [[ "$(sinfo -h -N -o %t 2>/dev/null | sort | uniq -c | tr -d ' ')" == 4idle ]]; }
for _ in $(seq 60); do
  all_idle && break
  sleep 1
done
all_idle || fail "the nodes do not become idle"

cd "$folder"
cat >grid.toml <<END
title = "A small grid"
tasks = ["cumulative-sum", "sort"]
seeds = "0..1"
[axis]
key = "test-scales"
values = [1, 2]
[settings]
samples = 2000
validation-samples = 64
test-samples = 64
batch = 100
epochs = ${EPOCHS:-1500}
length = 4
checkpoint-every = 5
test-scales = "1,2"
[[lines]]
name = "positional"
architecture = "positional"
END

# write NAME [OPTION...]: the script of an array that trains into the folder NAME.
write() {
  local name=$1
  shift
  mkdir -p "$name/slurm"
  "$program" submit grid.toml --threads 1 --results "$name" "$@" --dry-run >"$name.sh"
}
# field JOB_TASK NAME: what Slurm says of a task.
field() { scontrol show job "$1" -o | tr ' ' '\n' | sed -n "s/^$2=//p"; }
wait_for_end() {
  for _ in $(seq 900); do
    [[ -z "$(squeue -h -j "$1" 2>/dev/null)" ]] && return
    sleep 1
  done
  fail "job $1 does not end"
}
# wait_for_epoch NAME: until a run of its first shard has recorded some epochs.
wait_for_epoch() {
  for _ in $(seq 120); do
    grep -qs '"epoch":9,' "$1"/shards/0-of-*/runs/*/metrics.jsonl && return
    sleep 0.2
  done
  fail "$1: nothing is trained"
}
# The processes that train the shard K into the folder NAME: trainers NAME K; without K all shards.
trainers() { pgrep -f "^$program reproduce .*$folder/$1 --shard ${2:-}"; }
# ended_well NAME JOB: all tasks did, the first of them in a second sitting, with the right results.
ended_well() {
  wait_for_end "$2"
  local task
  for task in "$2"_0 "$2"_1; do
    [[ "$(field "$task" JobState)" == COMPLETED ]] || fail "$1: task $task did not complete"
  done
  (($(field "${2}_0" Restarts) > 0)) || fail "$1: it did not go back into the queue; raise EPOCHS"
  cmp "whole/grid/grid.csv" "$1/grid/grid.csv" || fail "$1: other results than one process has"
  [[ "$("$program" reproduce grid.toml --results "$1" --dry-run --json |
    sed -n 's/^    "missing": \([0-9]*\).*/\1/p')" == 0 ]] || fail "$1: runs are missing"
  echo "  $1: well after $(($(field "${2}_0" Restarts) + 1)) sittings"
}

echo "arrays of two, all at a time ..."
write frail --partition frail --array 2
frail=$(sbatch --parsable frail.sh)
write cut --partition sound --array 2
sed -i 's/--time=.*/--time=2:00/; s/--signal=.*/--signal=INT@60/' cut.sh # signalled after 30 s to 60 s
cut=$(sbatch --parsable cut.sh)
write killed --partition sound --array 2
killed=$(sbatch --parsable killed.sh)
write nothing --partition sound
# shellcheck disable=SC2016  # the script's own variables
sed -i 's/^srun .*/false/' nothing.sh
nothing=$(sbatch --parsable nothing.sh)

wait_for_epoch killed
kill -9 "$(trainers killed 0)"

wait_for_epoch frail # its node loses power: daemon, scripts, what trains, and who watches over them
node=$(field "${frail}_0" NodeList)
victims=("${daemon[$node]}")
for process in $(pgrep -f "^/bin/sh $folder/spool/$node/job") $(trainers frail); do
  victims+=("$process" "$(ps -o ppid= -p "$process" | tr -d ' ')")
done
kill -9 "${victims[@]}"
scontrol update nodename="$node" state=down reason=power

echo "one process meanwhile ..."
"$program" reproduce grid.toml --results whole --threads 1 >/dev/null 2>&1

wait_for_end "$nothing"
[[ "$(field "${nothing}_0" JobState)" == FAILED && "$(field "${nothing}_0" Restarts)" == 0 ]] ||
  fail "a sitting that brings nothing further is not the last"
grep -q "^stopped: " nothing/slurm/grid-"$nothing"_0.log || fail "it does not say that it stopped"
echo "  nothing: stopped"

ended_well killed "$killed"
ended_well frail "$frail"
[[ "$(field "${frail}_0" NodeList)" != "$node" ]] || fail "it ran on the node that is down"
ended_well cut "$cut"
echo "all well"
