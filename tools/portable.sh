#!/bin/sh
# portable.sh [ARCH]: the program for any Linux with a C library from 2018 on (glibc 2.28), built in a root of Debian 11
# (tools/root.sh): build/portable/stoker, the library of `record` and the licences of the libraries within, beside it; and all
# that is installed, in build/portable/root. For another architecture (arm64, amd64) than this machine's it is cross-built,
# into build/portable-ARCH.
set -eu
cd "$(dirname "$0")/.."
command -v dpkg >/dev/null || {
    echo "The portable program is built in a root of Debian 11, for which this system lacks dpkg, apt and mmdebstrap: run 'make portable' on Debian or Ubuntu, or in a container of one." >&2
    exit 1
}
native=$(dpkg --print-architecture)
arch=${1:-$native}
case $arch in
amd64) triplet=x86_64-linux-gnu ;;
arm64) triplet=aarch64-linux-gnu ;;
*)
    echo "The portable program is built for amd64 and arm64, not for '$arch'." >&2
    exit 1
    ;;
esac
if [ "$arch" = "$native" ]; then
    out=build/portable of='' compiler=gcc
else
    out=build/portable-$arch of=:$arch compiler=gcc-$(echo $triplet | tr _ -)
fi
libraries="libyaml-dev libjansson-dev zlib1g-dev libbz2-dev libdeflate-dev libjpeg62-turbo-dev liburing-dev"
packages="base-files dash coreutils cmake ninja-build ccache $compiler libc6-dev$of"
for library in $libraries; do
    packages="$packages $library$of"
done
# shellcheck disable=SC2086 # the list is words by intention
root=$(tools/root.sh make bullseye extract "$arch" $packages)
# git is not in the root; a checkout within another repository is not that
commit=$(git rev-parse --short=12 HEAD 2>/dev/null) && [ -z "$(git rev-parse --show-prefix)" ] || commit=
[ -z "$commit" ] || git diff --quiet HEAD -- || commit=$commit+
mkdir -p build
exec 9>build/portable.lock # of another such command, or of one that packs the result
flock 9
ccache=${XDG_CACHE_HOME:-$HOME/.cache}/stoker/ccache
mkdir -p "$out" "$ccache"
# shellcheck disable=SC2016
tools/root.sh run "$root" "$PWD=/stoker" "$ccache=/ccache" -- /bin/sh -euc '
    export CCACHE_DIR=/ccache CCACHE_MAXSIZE=200M
    cmake -S /stoker -B "/stoker/$1" -G Ninja -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="${2%%-*}" \
        -DCMAKE_C_COMPILER="$2-gcc" -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DSTOKER_PORTABLE=ON -DBUILD_TESTING=OFF -DSTOKER_COMMIT="$3" >"/stoker/$1/cmake.log" 2>&1 ||
        { cat "/stoker/$1/cmake.log" >&2; exit 1; }
    cmake --build "/stoker/$1" -j "$4" --target stoker
    for library in $5 gcc-10-base; do
        printf "==== %s ====\n\n" "$library"
        cat "/usr/share/doc/$library/copyright"
    done >"/stoker/$1/LICENSES"
    rm -rf "/stoker/$1/root"
    DESTDIR="/stoker/$1/root" cmake --install "/stoker/$1" --prefix /usr >/dev/null
    ' sh "$out" $triplet "$commit" "${JOBS:-$(nproc)}" "$libraries"
echo "built $out/stoker ($(stat -c %s "$out/stoker") bytes)"
