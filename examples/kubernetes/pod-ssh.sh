#!/bin/sh
# In place of ssh: pod-ssh.sh [options of kubectl exec ...] POD COMMAND runs a command for the shell of a pod.
#
#     stoker run unet3d_h100 -n 8 --hosts stoker-pods-0,stoker-pods-1 --ssh examples/kubernetes/pod-ssh.sh \
#         --ssh-arg -n --ssh-arg NAMESPACE ...
if [ $# -lt 2 ]; then
    echo "usage: pod-ssh.sh [options of kubectl exec ...] POD COMMAND" >&2
    exit 2
fi
options=$(($# - 2))
for word; do
    shift
    if [ $options -gt 0 ]; then
        set -- "$@" "$word"
        options=$((options - 1))
    elif [ -z "${pod+x}" ]; then
        pod=$word
    else
        command=$word
    fi
done
# a name that begins with a dash would be an option
case $pod in
-* | "")
    echo "pod-ssh.sh: '$pod' is not the name of a pod" >&2
    exit 2
    ;;
esac
exec kubectl exec --stdin "$@" "$pod" -- sh -c "$command"
