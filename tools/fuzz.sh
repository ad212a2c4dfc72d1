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
    "build/fuzz/tests/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=0 \
        -artifact_prefix="build/fuzz/" "build/fuzz/corpus/$name" "tests/fuzz/corpus/${name#fuzz_}" 2>&1 |
        grep -E 'ERROR|SUMMARY|Done' || true
done
ls build/fuzz/crash-* build/fuzz/timeout-* build/fuzz/leak-* build/fuzz/oom-* 2>/dev/null && exit 1
echo "no findings"
