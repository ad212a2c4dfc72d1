#!/bin/bash
# slurm.sh up|down FOLDER: a Slurm cluster of four hosts (hosts.sh) with everything it keeps in FOLDER.
# A folder FOLDER/mnt that is there before is /mnt of all hosts.
# SLURM_CONF=FOLDER/slurm.conf makes srun and sbatch use it. Needs root, slurm-wlm and munge; no systemd.
set -e
here=$(cd "$(dirname "$0")" && pwd)
dir=$2
export SLURM_CONF=$dir/slurm.conf
start() { # start NAME COMMAND...: in the background, with a log
    local name=$1
    shift
    "$@" >"$dir/log/$name.out" 2>&1 &
    echo $! >>"$dir/pids"
}
case $1 in
up)
    mkdir -p "$dir"/{state,spool,log}
    chmod 755 "$dir"
    cat >"$SLURM_CONF" <<CONF
ClusterName=stoker
SlurmctldHost=$(hostname)(10.78.0.254)
SlurmctldPort=16827
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
ReturnToService=2
KillWait=5
TmpFS=/var/tmp
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/ctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/log/ctld.log
SlurmdLogFile=$dir/log/slurmd.%n.log
NodeName=node[1-4] NodeAddr=10.78.0.[1-4] CPUs=2 RealMemory=500 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES OverSubscribe=YES:4 MaxTime=INFINITE State=UP
CONF
    "$here"/hosts.sh up 4
    (umask 077 && head -c 1024 /dev/urandom >"$dir/munge.key")
    start munged munged --foreground --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" \
        --pid-file="$dir/munged.pid" --log-file="$dir/log/munged.log" --seed-file="$dir/munge.seed"
    for _ in $(seq 300); do [ -S "$dir/munge.socket" ] && break || sleep 0.1; done
    start ctld slurmctld -D -i
    for i in 1 2 3 4; do
        mkdir -p "$dir/spool/node$i" "$dir/tmp$i"
        # not "ip netns exec": it mounts /sys anew, where slurmd looks for control groups
        start slurmd"$i" nsenter --net=/run/netns/stknode"$i" unshare --uts --mount bash -c \
            "hostname node$i; mount --bind '$dir/tmp$i' /var/tmp; [ ! -d '$dir/mnt' ] || mount --bind '$dir/mnt' /mnt; exec slurmd -D -N node$i"
    done
    for _ in $(seq 400); do
        [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 4 ] && exit 0
        sleep 0.1
    done
    echo "the nodes did not become idle" >&2
    exit 1
    ;;
down)
    if [ -S "$dir/munge.socket" ]; then
        # a job that is left would keep its host
        for j in $(timeout 5 squeue -h -o %A 2>/dev/null); do timeout 5 scancel "$j" || true; done
        for _ in $(seq 20); do [ -z "$(timeout 5 squeue -h 2>/dev/null)" ] && break || sleep 0.1; done
    fi
    [ -f "$dir/pids" ] && for p in $(tac "$dir/pids"); do kill "$p" 2>/dev/null || true; done
    for _ in $(seq 50); do
        alive=0
        for p in $(cat "$dir/pids" 2>/dev/null); do kill -0 "$p" 2>/dev/null && alive=1; done
        [ $alive = 0 ] && break
        sleep 0.1
    done
    "$here"/hosts.sh down 4
    rm -rf "$dir"
    ;;
esac
