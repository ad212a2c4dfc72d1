#!/bin/sh
# Installs what the named purposes (build, check, check-all, heavy) need and this machine lacks, with the system's package
# manager. Debian and Ubuntu; elsewhere it says what to install.
set -eu

need=""
viewer=""
libraries=""
want() { # want PACKAGE PROBE...: adds the package unless the probe succeeds
    package=$1
    shift
    if ! "$@" >/dev/null 2>&1; then need="$need $package"; fi
}
have_pc() { command -v pkg-config >/dev/null && pkg-config --exists "$1"; }
have_admin() { PATH="$PATH:/usr/sbin:/sbin" command -v "$1"; }
have_py() { command -v /usr/bin/python3 >/dev/null && /usr/bin/python3 -c "import $1"; }

for purpose in "$@"; do
    case $purpose in
    build)
        want gcc command -v cc
        want libc6-dev test -e /usr/include/stdio.h
        want cmake command -v cmake
        want ninja-build command -v ninja
        want pkg-config command -v pkg-config
        want libyaml-dev have_pc yaml-0.1
        want libjansson-dev have_pc jansson
        want zlib1g-dev have_pc zlib
        want libbz2-dev test -e /usr/include/bzlib.h
        want libdeflate-dev have_pc libdeflate
        want libjpeg-dev have_pc libjpeg
        want liburing-dev have_pc liburing
        ;;
    check)
        want python3 test -x /usr/bin/python3
        want libcmocka-dev have_pc cmocka
        want strace command -v strace
        ;;
    check-all)
        want python3-numpy have_py numpy
        want python3-h5py have_py h5py
        want python3-pil have_py PIL
        want python3-pandas have_py pandas
        want python3-yaml have_py yaml
        want python3-boto3 have_py boto3
        want openssl command -v openssl
        want sysstat command -v iostat
        want zsh command -v zsh
        want fish command -v fish
        want libfuse3-dev have_pc fuse3
        want fuse3 command -v fusermount3
        want btrfs-progs have_admin mkfs.btrfs
        want xfsprogs have_admin mkfs.xfs
        ;;
    heavy) # large ones: a machine without them skips their tests with a reason
        want chromium command -v chromium
        want gnuplot-nox command -v gnuplot
        want python3-matplotlib have_py matplotlib
        want python3-torch have_py torch
        want fio command -v fio
        # what tests/mpi runs under
        want openmpi-bin command -v mpirun.openmpi
        want mpich command -v mpirun.mpich
        want slurm-wlm command -v slurmctld
        want munge command -v munged
        # srun --mpi=pmix loads the library by its name without a version
        want libpmix-dev sh -c 'ls /usr/lib/*/libpmix.so /usr/lib/libpmix.so 2>/dev/null | grep -q .'
        want iproute2 command -v ip
        want openssh-server have_admin sshd
        want openssh-client command -v ssh
        # the portable program
        want mmdebstrap command -v mmdebstrap
        want debian-archive-keyring test -e /usr/share/keyrings/debian-archive-keyring.gpg
        want binutils command -v objdump
        want lintian command -v lintian
        want rpm command -v rpmbuild
        want qemu-user command -v qemu-aarch64
        want python3-venv test -e /usr/share/doc/python3-venv
        # servers of S3
        want ceph-mon command -v ceph-mon
        want ceph-osd command -v ceph-osd
        want ceph-common command -v ceph
        want radosgw command -v radosgw
        want swift-proxy command -v swift-proxy-server
        want swift-object command -v swift-object-server
        want swift-container command -v swift-container-server
        want swift-account command -v swift-account-server
        want memcached command -v memcached
        # what reads traces beside us
        want nodejs command -v node
        want npm command -v npm
        viewer=yes
        libraries=yes
        ;;
    esac
done

# The trace engine of Chrome's performance panel (BSD-3-Clause), for tests/interop/test_trace_engine.py alone: outside the
# tree, these versions. Without it, or without a network, that test says so.
get_viewer() {
    [ -n "$viewer" ] && command -v npm >/dev/null || return 0
    folder=${XDG_CACHE_HOME:-$HOME/.cache}/stoker/trace_engine-0.0.65
    [ ! -e "$folder/node_modules/@paulirish/trace_engine/models/trace/trace.js" ] || return 0
    mkdir -p "$folder"
    if ! npm install --prefix "$folder" --no-save --ignore-scripts --no-audit --no-fund --loglevel=error \
        @paulirish/trace_engine@0.0.65 third-party-web@0.30.0 legacy-javascript@0.0.1 >/dev/null 2>&1; then
        echo "npm could not fetch @paulirish/trace_engine: one test of traces will be skipped" >&2
        rm -rf "$folder"
    fi
}

# Readers and writers of Parquet that are not pyarrow (DuckDB, Rust's parquet, hyparquet; all MIT or Apache-2.0), for
# tests/interop/test_parquet.py alone (tests/util.py: PARQUET_READERS): outside the tree, these versions.
get_parquet() {
    [ -n "$libraries" ] && command -v npm >/dev/null || return 0
    folder=${XDG_CACHE_HOME:-$HOME/.cache}/stoker/parquet-1
    [ ! -e "$folder/complete" ] || return 0
    mkdir -p "$folder"
    if npm install --prefix "$folder" --no-save --ignore-scripts --no-audit --no-fund --loglevel=error \
        @duckdb/node-api@1.5.6-r.1 hyparquet@1.33.0 hyparquet-compressors@1.1.2 parquet-wasm@0.8.0 apache-arrow@21.2.0 \
        >/dev/null 2>&1; then
        : >"$folder/complete"
    else
        echo "npm could not fetch DuckDB and other readers of Parquet: a part of one test will be skipped" >&2
        rm -rf "$folder"
    fi
}

# Libraries that Debian has not, for tests/interop (tests/util.py: LIBRARIES): outside the tree, these versions. Without them,
# or without a network, their tests say so.
get_venv() { # get_venv FOLDER "OPTIONS OF VENV" "OPTIONS OF PIP" PACKAGE...
    folder=${XDG_CACHE_HOME:-$HOME/.cache}/stoker/$1
    [ ! -e "$folder/complete" ] || return 0
    rm -rf "$folder"
    venv=$2
    pip=$3
    shift 3
    # shellcheck disable=SC2086 # options are words by intention
    if ! { /usr/bin/python3 -m venv $venv "$folder" &&
        "$folder/bin/pip" install --quiet --disable-pip-version-check $pip "$@" &&
        : >"$folder/complete"; } >/dev/null 2>&1; then
        echo "pip could not fetch $*: their tests will be skipped" >&2
        rm -rf "$folder"
    fi
}
get_libraries() {
    [ -n "$libraries" ] || return 0
    get_venv libraries-2 "" "" pyarrow==26.0.1 webdataset==1.0.2 s3dlio==0.10.0 s3fs==2026.9.0 minio==7.2.20
    # these two beside Debian's PyTorch: what they want of their own is gigabytes
    get_venv libraries-s3torch-1 --system-site-packages --no-deps s3torchconnector==1.5.0 s3torchconnectorclient==1.5.0
    get_venv libraries-arrow-1 "" "" pyarrow==26.0.1 datasets==5.2.0
    # without what they need for clouds and for text
    get_venv libraries-chunks-1 --system-site-packages --no-deps mosaicml-streaming==0.13.0 litdata==0.2.64 \
        lightning-utilities==0.15.3 filelock==4.3.1 python-snappy==0.7.3 cramjam==2.14.0 brotli==1.2.1 zstd==1.5.7.2 xxhash==4.1.0 \
        tifffile==2026.3.3 tqdm==4.70.1 catalogue==2.0.10
}

# S3 servers that Debian has not, for tests/interop/test_s3_servers.py (tests/s3_rigs.py): outside the tree, these versions.
# Building versitygw takes minutes, once; it needs Go 1.24 or later, which Debian 12 has not.
get_servers() {
    [ -n "$libraries" ] || return 0
    folder=${XDG_CACHE_HOME:-$HOME/.cache}/stoker/s3rver-3.7.1
    if command -v npm >/dev/null && [ ! -e "$folder/node_modules/s3rver/bin/s3rver.js" ]; then
        mkdir -p "$folder"
        if ! npm install --prefix "$folder" --no-save --ignore-scripts --no-audit --no-fund --loglevel=error s3rver@3.7.1 \
            >/dev/null 2>&1; then
            echo "npm could not fetch s3rver: the tests over it will be skipped" >&2
            rm -rf "$folder"
        fi
    fi
    folder=${XDG_CACHE_HOME:-$HOME/.cache}/stoker/versitygw-1.8.0
    if command -v go >/dev/null && [ ! -e "$folder/bin/versitygw" ]; then
        mkdir -p "$folder"
        if ! GOBIN=$folder/bin GOPATH=$folder/path GOCACHE=$folder/cache GOTOOLCHAIN=local GOFLAGS=-modcacherw timeout 400 \
            go install -ldflags='-s -w' github.com/versity/versitygw/cmd/versitygw@v1.8.0 >/dev/null 2>&1; then
            echo "go could not build versitygw: the tests over it will be skipped" >&2
            rm -rf "$folder"
        fi
        rm -rf "$folder/path" "$folder/cache"
    fi
}
if [ -z "$need" ]; then
    get_viewer
    get_parquet
    get_libraries
    get_servers
    exit 0
fi

if ! command -v apt-get >/dev/null; then
    echo "stoker needs these packages (Debian's names):$need" >&2
    echo "This system has no apt-get: install their equivalents and call make again." >&2
    exit 1
fi
if [ "$(id -u)" = 0 ]; then
    root=""
elif command -v sudo >/dev/null; then
    root="sudo"
else
    echo "stoker needs these packages:$need" >&2
    echo "Installing them needs root, and there is no sudo: run 'apt-get install$need' as root." >&2
    exit 1
fi
echo "Installing with apt-get${root:+ (sudo asks for your password)}:$need"
# shellcheck disable=SC2086 # the list is words by intention
{
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $need >/dev/null 2>&1 ||
        { $root apt-get update -qq &&
            $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $need >/dev/null; }
} || {
    echo "apt-get could not install:$need" >&2
    echo "See its message above; with the packages there, call make again." >&2
    exit 1
}
get_viewer
get_parquet
get_libraries
get_servers
