#!/bin/sh
# Runs every test of a build folder and ends with one line of counts; what was skipped, and why, is
# listed before it.
set -u
build=$1
log=$build/check.log
ctest --test-dir "$build" --output-on-failure -j "$(nproc)" ${CTEST_ARGS:-} >"$log" 2>&1
rc=$?
if [ $rc -ne 0 ]; then cat "$log"; else grep -E 'tests passed|Total Test time' "$log"; fi
python3 - "$build" <<'PY' 2>/dev/null || /usr/bin/python3 -c 'pass'
import pathlib, re, sys
text = pathlib.Path(sys.argv[1], "Testing/Temporary/LastTest.log").read_text(errors="replace")
for name, body in re.findall(r'Testing: (\S+)\n(.*?)(?=\n\d+/\d+ Testing: |\Z)', text, re.S):
    for line in re.findall(r'^(?:skip|SKIP)(?:ped)?: .*$', body, re.M):
        print(f"  {name}: {line}")
PY
total=$(grep -cE '^ *[0-9]+/[0-9]+ Test ' "$log")
failed=$(grep -cE '\*\*\*(Failed|Timeout|Exception|Not Run)|\(Failed\)' "$log")
skipped=$(grep -cE '\*\*\*Skipped' "$log")
failed=$(grep -E '^ *[0-9]+/[0-9]+ Test ' "$log" | grep -cvE 'Passed|Skipped')
echo "$((total - failed - skipped)) passed, $failed failed, $skipped skipped"
[ "$total" -gt 0 ] && [ "$failed" -eq 0 ] && exit $rc
exit 1
