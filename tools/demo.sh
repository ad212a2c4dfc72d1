#!/bin/sh
# The main job at a size for any machine: a small unet3d dataset on the local disk, trained on and
# evaluated by four emulated accelerators. The data is removed at the end; the results stay.
set -eu
stoker=$1
here=$(dirname "$stoker")/demo
rm -rf "$here"
mkdir -p "$here"
trap 'rm -rf "$here/data"' EXIT INT TERM

# 3D U-Net of MLPerf Storage with files of about 4 MB instead of 147, and the work scaled alike
set -- unet3d_h100 -n 4 \
    dataset.data_folder="$here/data" \
    dataset.num_files_train=224 dataset.num_files_eval=32 \
    dataset.record_length_bytes=4194304 dataset.record_length_bytes_stdev=1048576 \
    dataset.record_length_bytes_resize=0 \
    workflow.evaluation=true workflow.checkpoint=false \
    reader.batch_size=2 reader.batch_size_eval=2 reader.prefetch_size=4 \
    train.epochs=3 train.computation_time=0.08 evaluation.eval_time=0.05

echo "1. A dataset for 3D U-Net, files scaled down to about 4 MB, on the local disk"
"$stoker" generate "$@"

# What was just written is in the page cache; reading it from there would say nothing about the disk.
# dd with nocache and count=0 reads nothing and asks the kernel to forget the file; it needs no root.
find "$here/data" -name '*.npz' -exec dd if={} iflag=nocache count=0 status=none \;

echo
echo "2. Three epochs of training and evaluation by four emulated accelerators"
"$stoker" run "$@" -o "$here/result"
echo
echo "The first epoch came from the disk; the later ones found the files in the page cache, as the bytes"
echo "verdict says. Everything measured is in $here/result/result.json, and summary.json is as"
echo "DLIO writes it. Other workloads: $stoker show workloads"
