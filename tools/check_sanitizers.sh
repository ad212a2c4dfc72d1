#!/bin/sh
# Builds and tests under the address, undefined and thread sanitizers, and builds with clang; warnings
# are errors. The known answers, with their hundreds of threads, run under the thread sanitizer.
set -eu
for preset in asan tsan; do
    echo "== $preset"
    cmake --preset $preset -G Ninja >/dev/null
    cmake --build build/$preset -j "$(nproc)" >build/$preset/build.log 2>&1 || { cat build/$preset/build.log; exit 1; }
    # truth measures; the suites of formats have no threads
    case $preset in
    asan) CTEST_ARGS="-LE interop|tidy|truth" tools/check.sh build/$preset ;;
    tsan) CTEST_ARGS="-LE interop|tidy|fuzz -E contract.format" tools/check.sh build/$preset ;;
    esac
done
if command -v clang >/dev/null; then
    echo "== clang"
    cmake --preset clang -G Ninja >/dev/null
    cmake --build build/clang -j "$(nproc)" >build/clang/build.log 2>&1 || { cat build/clang/build.log; exit 1; }
    echo "clang builds without a warning"
fi
