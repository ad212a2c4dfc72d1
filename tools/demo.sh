#!/bin/sh
# A small study of the local disk: a workload scaled down, three process counts, two factors. The data is
# removed at the end; results and report stay.
set -eu
stoker=$1
source=$(cd "$(dirname "$0")/.." && pwd)
here=$(dirname "$stoker")/demo
rm -rf "$here"
mkdir -p "$here"
cp "$source/examples/design.csv" "$here/design.csv"

echo "A study: 3D U-Net scaled down to files of about 1 MB; 1, 2 and 4 accelerators; readers and formats"
echo
# Each epoch begins with its files evicted from the page cache: a dataset this small would be read from
# memory otherwise, and the disk would not be measured.
"$stoker" study run "$here/design.csv" --config-dir "$source/examples" \
    --results "$here/results" --scratch "$here/scratch" storage.page_cache=cold_epochs
echo
"$stoker" study status "$here/design.csv" --config-dir "$source/examples" \
    --results "$here/results" --scratch "$here/scratch"
echo
"$stoker" report "$here/results" -o "$here/report.html" --csv "$here/benchmark_results.csv" \
    --title "A small study of this machine's disk"
