#!/bin/bash
# What a launcher calls instead of ssh: ssh.sh [options] nodeI COMMAND... runs the command as if on that
# host of hosts.sh: in its network, and under its name. STOKER_HOST_DATA/nodeI, when there is such a folder,
# is seen by that host as STOKER_HOST_DATA/here.
while [[ $1 == -* ]]; do
    case $1 in -l | -p | -o) shift 2 ;; *) shift ;; esac
done
host=$1
shift
exec nsenter --net=/run/netns/stk"$host" unshare --uts --mount bash -c '
    hostname "$0"
    if [ -d "$STOKER_HOST_DATA/$0" ]; then mount --bind "$STOKER_HOST_DATA/$0" "$STOKER_HOST_DATA/here"; fi
    exec bash -c "$1"' "$host" "$*"
