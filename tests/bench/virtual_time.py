#!/usr/bin/env python3
"""What virtual time costs: trainings of many ranks by the loaders' own code over a model that only waits.

    virtual_time.py [BUILD] [--ranks N] [--steps N]

Prints for each loader the processor time of a rank's step, what a training of 10,000 ranks and 1,000 steps takes with it,
and memory: used, and stated before (virtual_training_bytes). How far virtual time is from real runs:
tests/truth/test_virtual_time.py --nominal, on a quiet machine.
"""
import argparse
import json
import pathlib
import resource
import subprocess

COMMON = ["train.computation_time=0.05", "train.epochs=1", "dataset.num_files_train=100000000", "reader.read_threads=4",
          "dataset.num_samples_per_file=1", "reader.prefetch_size=8"]
TF = ["framework=tensorflow", "reader.data_loader=tensorflow", "reader.prefetch_size=2"]
CASES = {
    "pytorch, batches of 1": ["reader.batch_size=1"],
    "pytorch, batches of 400": ["reader.batch_size=400"],
    "pytorch, out of order": ["reader.batch_size=1", "reader.in_order=false"],
    "dali, runs of 4": ["reader.batch_size=4", "reader.data_loader=dali", "reader.prefetch_size=2"],
    "tensorflow, generators": ["reader.batch_size=1", *TF],
    "tensorflow, records": ["reader.batch_size=1", "dataset.format=tfrecord", *TF],
    "native_dali": ["reader.batch_size=1", "reader.data_loader=native_dali", "dataset.format=npy", "reader.prefetch_size=2"],
    "synthetic": ["reader.batch_size=1", "reader.data_loader=synthetic"],
}


def cpu_s():
    """In user mode, and in the kernel, which is where memory is taken: once."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime, used.ru_stime


def simulate(tool, ranks, steps, keys):
    before = cpu_s()
    done = subprocess.run([tool, "default", str(ranks), f"+{steps}", "batch:0.0001x0.5", *COMMON, *keys], capture_output=True,
                          text=True, timeout=600, check=True)
    user, system = (b - a for a, b in zip(before, cpu_s()))
    return user, system, json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default="build", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, default=10000)
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()
    tool = args.build / "tests" / "virtual_tool"
    print(f"{'loader, 4 workers':26} {'us a rank-step':>15} {'1e4 x 1e3':>10} {'memory':>9} {'stated':>9} {'threads':>8}")
    for name, keys in CASES.items():
        short, _, _ = simulate(tool, args.ranks, args.steps // 4, keys)
        long, begin, out = simulate(tool, args.ranks, args.steps, keys)
        each = (long - short) / (args.ranks * (args.steps - args.steps // 4))
        print(f"{name:26} {1e6 * each:15.2f} {1e7 * each + short + begin:8.0f} s {out['peak_bytes'] / 2**20:5.0f} MiB "
              f"{out['bound_bytes'] / 2**20:5.0f} MiB {out['fibers']:8}", flush=True)


main()
