#!/bin/sh
# Runs the tests of a build folder: what was skipped and why, what failed, and one line of counts.
set -u
build=$1
log=$build/check.log
# shellcheck disable=SC2086 # CTEST_ARGS holds several words
ctest --test-dir "$build" --output-on-failure -j "$(nproc)" ${CTEST_ARGS:-} >"$log" 2>&1
rc=$?
[ $rc -eq 0 ] || cat "$log"
grep 'Total Test time' "$log"

results=$build/Testing/Temporary/LastTest.log
[ -f "$results" ] && awk '/ Testing: /{name=$NF} /^skipped: /{print "  " name ": " $0}' "$results"
total=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#' "$log")
passed=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#.* Passed ' "$log")
skipped=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#.*\*\*\*Skipped' "$log")
failed=$((total - passed - skipped))
echo "$passed passed, $failed failed, $skipped skipped"
[ "$passed" -gt 0 ] && [ "$failed" -eq 0 ] && exit $rc
exit 1
