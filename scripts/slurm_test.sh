#!/usr/bin/env bash
# 'posattn submit' against a real Slurm: starts munged, slurmctld and one slurmd of this machine in a
# temporary folder, submits a small grid as an array and over ranks, interrupts both, has them put
# themselves back into the queue, and compares the results with those of one process.
#   sudo apt-get install slurm-wlm munge
#   scripts/slurm_test.sh [build/release/posattn]
# About ten minutes, for Slurm lets a job that went back wait for two; not part of ./check. KEEP=1
# leaves the folder.
set -euo pipefail

program=$(realpath "${1:-build/release/posattn}")
for tool in munged slurmctld slurmd sbatch; do
  PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || {
    echo "error: no $tool; install slurm-wlm and munge" >&2
    exit 1
  }
done
export PATH=$PATH:/usr/sbin

folder=$(mktemp -d /tmp/posattn-slurm-XXXXXX)
children=()
cleanup() {
  for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
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
SlurmdPort=26818
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=10
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF=$folder/slurm.conf
sleep 1
slurmctld -D >"$folder/slurmctld.out" 2>&1 &
children+=($!)
slurmd -D >"$folder/slurmd.out" 2>&1 &
children+=($!)
for _ in $(seq 60); do
  [[ "$(sinfo -h -o %t 2>/dev/null)" == idle ]] && break
  sleep 1
done
[[ "$(sinfo -h -o %t)" == idle ]] || fail "the node does not become idle"

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
epochs = ${EPOCHS:-400}
length = 4
checkpoint-every = 5
test-scales = "1,2"
[[lines]]
name = "positional"
architecture = "positional"
END

submit() { "$program" submit grid.toml --partition test --threads 1 "$@"; }
# field JOB NAME: what Slurm says of a job, of an array the first of its tasks.
field() { scontrol show job "$1" -o | head -n 1 | sed -n "s/.* $2=\([^ ]*\).*/\1/p"; }
wait_for_end() {
  for _ in $(seq 900); do
    [[ -z "$(squeue -h -j "$1" 2>/dev/null)" ]] && return
    sleep 1
  done
  fail "job $1 does not end"
}
same_results() {
  cmp "whole/grid/grid.csv" "$1/grid/grid.csv" || fail "$1: other results than one process has"
  [[ "$("$program" reproduce grid.toml --results "$1" --dry-run --json |
    sed -n 's/^    "missing": \([0-9]*\).*/\1/p')" == 0 ]] || fail "$1: runs are missing"
}

echo "one process ..."
"$program" reproduce grid.toml --results whole --threads 1 >/dev/null 2>&1

echo "an array of two, cut by its time limit ..."
submit --array 2 --results parts --dry-run >parts.sh
mkdir -p parts/slurm
sed -i 's/--time=.*/--time=2:00/; s/--signal=.*/--signal=INT@60/' parts.sh  # signalled after 30 s to 60 s
job=$(sbatch --parsable parts.sh)
wait_for_end "$job"
[[ "$(field "${job}_0" JobState)" == COMPLETED ]] || fail "the array did not complete"
restarts=$(field "${job}_0" Restarts)
echo "  sittings of the first task: $((restarts + 1))"
((restarts > 0)) || fail "the time limit came too late: raise EPOCHS"
same_results parts

echo "a sitting that brings nothing further ..."
submit --nodes 1 --results nothing --dry-run | sed 's/"\$posattn" "\$@" --threads/false "$@" --threads/' >nothing.sh
mkdir -p nothing/slurm
job=$(sbatch --parsable nothing.sh)
wait_for_end "$job"
[[ "$(field "$job" JobState)" == FAILED && "$(field "$job" Restarts)" == 0 ]] || fail "it did not stop"
grep -q "^stopped: " nothing/slurm/grid-"$job".log || fail "it does not say that it stopped"

echo "all well"
