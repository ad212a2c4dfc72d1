#!/bin/sh
# Runs every fuzz target for a while (default 60 s each) from its corpus. Needs clang.
set -eu
seconds=${1:-60}
command -v clang >/dev/null || { echo "fuzzing needs clang (package clang)" >&2; exit 1; }
cmake --preset fuzz -G Ninja >/dev/null
cmake --build build/fuzz -j "$(nproc)" >build/fuzz/build.log || { cat build/fuzz/build.log; exit 1; }
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    mkdir -p "build/fuzz/corpus/$name"
    echo "== $name, $seconds s"
    log=build/fuzz/$name.log
    "build/fuzz/tests/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix="build/fuzz/" "build/fuzz/corpus/$name" "tests/fuzz/corpus/${name#fuzz_}" >"$log" 2>&1 || {
        tail -40 "$log"
        exit 1
    }
    grep -E '^Done' "$log"
done
echo "no findings"
