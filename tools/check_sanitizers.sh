#!/bin/sh
# Builds and tests under the address, undefined and thread sanitizers; the first of the two builds is
# clang's where there is one, with warnings as errors. Left out, and not built, is what they cannot find anything in:
# tests that measure, tests that spend their time in a browser, a shell or a real library, arithmetic that takes a minute there, and for the
# thread sanitizer codecs, suites that start no thread (of unit tests, those that do are named: `strace -f -e clone3,clone TEST`
# tells), and readers of results that take minutes there.
set -eu
# clang's sanitizers are a package of their own in places; what is not there is found out before building
clang_asan() {
    folder=$(mktemp -d)
    echo 'int main(void) { return 0; }' >"$folder/probe.c"
    clang -fsanitize=address,undefined -o "$folder/probe" "$folder/probe.c" >/dev/null 2>&1 && found=0 || found=1
    rm -r "$folder"
    return $found
}
for preset in asan tsan; do
    case $preset in
    asan) tiers=interop,tidy,truth,scale,fault tests='cli.(report|recipes|page_cache|completion|examples|probe)|unit.(rng_large|point_fit)' ;;
    tsan)
        tiers=interop,tidy,fuzz,truth,fault tests='contract.(format|checkpoint)|cli.(report|recipes|words|findings|hostile_text|damaged_results|examples|framework_time|plan|need|flags|survey|mlperf_results|compare|completion|calibrate|probe|study_plan|judged_again)'
        threads='at_once|clock|comm|dali|fault|file|flight|framework|generate|handover|loader.*|native_dali|net|order|processors|queue'
        tests="$tests|unit.(?!($threads|residency|run|series|span|survey|thread|throttle|verify)$)"
        ;;
    esac
    compiler=
    [ $preset = tsan ] || ! clang_asan || compiler=clang
    # an earlier build's compiler would stay
    if [ -n "$compiler" ] && ! grep -qs '^CMAKE_C_COMPILER:.*clang' build/$preset/CMakeCache.txt; then
        rm -f build/$preset/CMakeCache.txt
    fi
    echo "== $(date +%H:%M:%S) $preset${compiler:+, clang}: building"
    CC=${compiler:-${CC:-cc}} cmake --preset $preset -G Ninja ${compiler:+-DSTOKER_WERROR=ON} >/dev/null
    set -- build/$preset --all --leave-tiers "$tiers" --leave "$tests"
    # shellcheck disable=SC2046 # names of targets
    cmake --build build/$preset -j "$(nproc)" -t $(tools/check.py "$@" --targets) >build/$preset/build.log 2>&1 ||
        { cat build/$preset/build.log; exit 1; }
    tools/check.py "$@"
done
