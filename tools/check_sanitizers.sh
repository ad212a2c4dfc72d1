#!/bin/sh
# Builds and tests under the address, undefined and thread sanitizers, and builds with clang; warnings
# are errors. Left out is what they cannot find anything in: tests that measure, tests that spend their
# time in a browser or a real library, and for the thread sanitizer codecs and suites of one thread.
set -eu
for preset in asan tsan; do
    echo "== $preset"
    cmake --preset $preset -G Ninja >/dev/null
    cmake --build build/$preset -j "$(nproc)" >build/$preset/build.log 2>&1 || { cat build/$preset/build.log; exit 1; }
    case $preset in
    asan) leave="-LE interop|tidy|truth|scale -E cli.(report|study_plots|page_cache)" ;;
    tsan) leave="-LE interop|tidy|fuzz|truth -E contract.(format|checkpoint)|unit.(jpeg|png|csv|npz|npy|zip|hdf5)" ;;
    esac
    CTEST_ARGS=$leave tools/check.sh build/$preset
done
if command -v clang >/dev/null; then
    echo "== clang"
    cmake --preset clang -G Ninja >/dev/null
    cmake --build build/clang -j "$(nproc)" --target stoker >build/clang/build.log 2>&1 || { cat build/clang/build.log; exit 1; }
    echo "clang builds without a warning"
fi
