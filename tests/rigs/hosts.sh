#!/bin/bash
# hosts.sh up N | down N: N hosts on this machine, each a network namespace node1..nodeN at 10.78.0.1..N,
# joined by a bridge at 10.78.0.254. Needs root.
set -e
names() { for i in $(seq "$1"); do echo "$i"; done; }
case $1 in
up)
    ip link add stkbr0 type bridge
    ip addr add 10.78.0.254/24 dev stkbr0
    ip link set stkbr0 up
    for i in $(names "$2"); do
        ip netns add stknode"$i"
        ip link add stkv"$i" type veth peer name eth0 netns stknode"$i"
        ip link set stkv"$i" master stkbr0 up
        ip -n stknode"$i" addr add 10.78.0."$i"/24 dev eth0
        ip -n stknode"$i" link set eth0 up
        ip -n stknode"$i" link set lo up
    done
    ;;
down)
    for i in $(names "$2"); do
        # a namespace lives as long as a process in it: its link would stay
        ip link del stkv"$i" 2>/dev/null || true
        ip netns del stknode"$i" 2>/dev/null || true
    done
    ip link del stkbr0 2>/dev/null || true
    ;;
esac
