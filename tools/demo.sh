#!/bin/sh
# The main job at a size for any machine: a small unet3d dataset on the local disk, trained on and
# evaluated by four emulated accelerators. Everything stays under build/demo and is removed at the end
# but for the results.
set -eu
stoker=$1
here=$(dirname "$stoker")/demo
rm -rf "$here"
mkdir -p "$here"
trap 'rm -rf "$here/data"' EXIT INT TERM

echo "Stoker demo: 3D U-Net training with its files scaled to about 4 MB, four emulated accelerators."
echo
"$stoker" run unet3d_h100 -n 4 -o "$here/result" \
    dataset.data_folder="$here/data" \
    workflow.generate_data=true workflow.evaluation=true workflow.checkpoint=false \
    dataset.num_files_train=224 dataset.num_files_eval=32 \
    dataset.record_length_bytes=4194304 dataset.record_length_bytes_stdev=1048576 \
    dataset.record_length_bytes_resize=0 \
    reader.batch_size=2 reader.batch_size_eval=2 reader.prefetch_size=4 \
    train.epochs=3 train.computation_time=0.08 evaluation.eval_time=0.05
echo
echo "Results: $here/result (summary.json as DLIO writes it; result.json has everything)"
echo "Try next:  $stoker run unet3d_h100 -n 8 ...   or   $stoker show workloads"
