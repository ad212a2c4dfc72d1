#!/bin/sh
# Roots of Debian for building and testing, without privileges where the kernel allows it.
#
#   root.sh make SUITE VARIANT ARCH PACKAGE...
#       Prints the folder of such a root, which is made with mmdebstrap the first time and kept in
#       ${XDG_CACHE_HOME:-~/.cache}/stoker/roots. VARIANT `extract`: the packages are unpacked and no more, which needs no
#       privileges; others are those of mmdebstrap. ARCH may be another than this machine's for packages named with it
#       (zlib1g-dev:arm64). STOKER_MIRROR is where packages come from.
#   root.sh run ROOT FOLDER=AT... -- COMMAND...
#       Runs a command in a root, which sees the folders at the paths AT, and /proc and /dev of this machine.
set -eu
mirrors=${STOKER_MIRROR:-http://deb.debian.org/debian http://archive.debian.org/debian}

fail() {
    echo "$1" >&2
    exit 1
}

make_root() {
    suite=$1 variant=$2 arch=$3
    shift 3
    roots=${XDG_CACHE_HOME:-$HOME/.cache}/stoker/roots
    root=$roots/$suite-$variant-$arch-$(echo "$@" | cksum | cut -d' ' -f1)
    if [ ! -d "$root" ]; then
        command -v mmdebstrap >/dev/null ||
            fail "A root of Debian is made with mmdebstrap, which is missing: apt-get install mmdebstrap debian-archive-keyring"
        mkdir -p "$roots"
        new=$(mktemp -d "$roots/new.XXXXXX")
        trap 'rm -rf "$new"' EXIT
        trap 'exit 1' HUP INT TERM
        native=$(dpkg --print-architecture)
        mode=auto
        [ "$variant" != extract ] || mode=chrootless
        made=
        echo "making a root of Debian $suite in $root" >&2
        for mirror in $mirrors; do
            # the archive of old suites is no longer signed anew
            mmdebstrap --quiet --mode=$mode --variant="$variant" --format=tar \
                --architectures="$native$([ "$arch" = "$native" ] || echo ",$arch")" \
                --aptopt='Acquire::Check-Valid-Until "false"' --include="$(echo "$@" | tr ' ' ,)" \
                "$suite" "$new/root.tar" "$mirror" 2>"$new/messages" && made=yes && break
        done
        [ "$made" ] || fail "mmdebstrap could not make a root of Debian $suite from $mirrors (STOKER_MIRROR names others): $(grep -m1 'Failed to fetch\|Unable to\|not find' "$new/messages" || tail -2 "$new/messages")"
        mkdir "$new/root"
        tar -xf "$new/root.tar" -C "$new/root" --no-same-owner --exclude='./dev/*' --exclude='./usr/share/info/*' \
            --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*'
        chmod -R u+rwX "$new/root"
        # another such command may have been faster
        mv -T "$new/root" "$root" 2>/dev/null || [ -d "$root" ]
    fi
    echo "$root"
}

run_in() {
    root=$1
    shift
    as_root=--map-root-user
    [ "$(id -u)" != 0 ] || as_root=
    # shellcheck disable=SC2086 # nothing is no word
    unshare --mount $as_root true 2>/dev/null ||
        fail "This system allows no mounts of one's own (unshare --mount), which running in another root takes: run this as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1; in a container: --privileged)"
    # shellcheck disable=SC2086,SC2016
    exec unshare --mount $as_root sh -euc '
        root=$1
        shift
        mount --bind "$root" "$root"
        for folder in dev proc; do
            mkdir -p "$root/$folder"
            mount --rbind "/$folder" "$root/$folder"
        done
        while [ "$1" != -- ]; do
            mkdir -p "$root${1##*=}"
            mount --bind "${1%=*}" "$root${1##*=}"
            shift
        done
        shift
        exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C chroot "$root" "$@"' sh "$root" "$@"
}

command=${1:-}
[ $# = 0 ] || shift
case $command in
make) make_root "$@" ;;
run) run_in "$@" ;;
*) fail "root.sh make SUITE VARIANT ARCH PACKAGE... | root.sh run ROOT FOLDER=AT... -- COMMAND..." ;;
esac
