#!/bin/sh
# Runs the tests of a build folder: what was skipped and why, what failed, and one line of counts.
# A test that measures (truth, mpi, scale) and misses is run once more, alone: other work on the machine
# passes, a wrong program misses twice. A sanitizer's finding is never given a second chance.
set -u
build=$1
log=$build/check.log
again=$build/check-again.log
tests=$build/Testing/Temporary
rm -f "$again"
# shellcheck disable=SC2086 # CTEST_ARGS holds several words
ctest --test-dir "$build" --output-on-failure -j "$(nproc)" ${CTEST_ARGS:-} >"$log" 2>&1
rc=$?
[ $rc -eq 0 ] || cat "$log"
grep 'Total Test time' "$log"
[ -f "$tests/LastTest.log" ] &&
    awk '/ Testing: /{name=$NF} /^skipped: /{print "  " name ": " $0}' "$tests/LastTest.log"

total=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#' "$log")
passed=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#.* Passed ' "$log")
skipped=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#.*\*\*\*Skipped' "$log")
failed=$((total - passed - skipped))

second=0
if [ "$failed" -gt 0 ] && grep -q '^STOKER_SANITIZE:.*=$' "$build/CMakeCache.txt"; then
    measures=$(sed -n 's/^[0-9]*:\(\(truth\|mpi\|scale\)\..*\)$/\1/p' "$tests/LastTestsFailed.log")
    [ "$(printf '%s\n' "$measures" | grep -c .)" -eq "$failed" ] || measures=
    for name in $measures; do
        echo "missed, once more alone: $name"
        ctest --test-dir "$build" --output-on-failure -R "^$name\$" >>"$again" 2>&1 || break
        second=$((second + 1))
    done
    if [ "$second" -eq "$failed" ]; then
        passed=$((passed + failed)) failed=0 rc=0
    elif [ -f "$again" ]; then
        cat "$again"
        second=0
    fi
fi
[ "$second" -eq 0 ] || more=", $second of the passed at the second attempt"
echo "$passed passed, $failed failed, $skipped skipped${more:-}"
[ "$passed" -gt 0 ] && [ "$failed" -eq 0 ] && exit $rc
exit 1
