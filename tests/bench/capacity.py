"""stoker capacity against known truth: stores that are held to a bandwidth, to requests a second, or to a latency with a
concurrency, in the program (throttle) and by the kernel (a loop device with blkio). Printed for each: the arithmetic's
capacity, what the search said, and its time beside one full run (500 steps) at the knee.

    python3 tests/bench/capacity.py BINARY [CASE ...] [--repeat N] [--time]    without CASE all ten"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from loop_device import LoopDevice, Unavailable, join  # noqa: E402

COMPUTE = 0.05
TARGET = 0.9
HEADER = 128
BASE = {"train.computation_time": COMPUTE, "reader.batch_size": 1, "reader.access": "native", "dataset.format": "npy",
        "dataset.record_length_bytes": 100000}
NEED = TARGET / COMPUTE  # samples/s of one accelerator at the target


def side(record):
    return math.isqrt(record) ** 2


def throttle(**keys):
    return {"storage.store": "throttle+memory", **{f"storage.throttle.{k}": v for k, v in keys.items()}}


def bandwidth(n, record=100000):
    return n * NEED * (side(record) + HEADER)


# name: (keys, the number of accelerators that the arithmetic says, as a fraction; inf: more than are tried)
CASES = {
    "bandwidth_12": (throttle(bandwidth=bandwidth(12.5)), 12.5),
    "bandwidth_edge": (throttle(bandwidth=bandwidth(20.1)), 20.1),
    "bandwidth_latency": (throttle(bandwidth=bandwidth(7.4), latency=0.004), 7.4),
    "iops_10": (throttle(iops=10.6 * NEED), 10.6),
    "iops_slice": (throttle(iops=15.5 * NEED, iops_slice=0.1), 15.5),
    "latency_queue": (throttle(latency=0.02, concurrency=6), 6 / 0.02 / NEED),
    "latency_random": (throttle(latency="{scale: 0.015, type: exponential}", concurrency=5), 5 / 0.015 / NEED),
    "stream": (throttle(stream_bandwidth=(side(100000) + HEADER) / (COMPUTE * 1.3)), 0),
}
# of a loop device: bytes/s or requests/s of the kernel's limit
LOOP = {
    "loop_bandwidth": (dict(bps=1), 9.5, "posix"),
    "loop_direct": (dict(bps=1), 14.4, "direct"),
    # the kernel counts whole requests in slices of 0.1 s
    "loop_iops": (dict(iops=1), 60 / 9, "direct"),
}


def words(keys):
    return [f"{k}={v}" for k, v in keys.items()]


def search(binary, keys, folder, surround, *more):
    begin = time.monotonic()
    done = subprocess.run([binary, "capacity", "default", *words({**BASE, **keys}), "-q", "-o", folder, *more],
                          capture_output=True, text=True, timeout=900, **surround)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(pathlib.Path(folder, "capacity.json").read_text()), time.monotonic() - begin


def full_run(binary, keys, knee, folder, surround):
    """One run of 500 steps of `knee` accelerators, from files that are there or are made first."""
    begin = time.monotonic()
    done = subprocess.run([binary, "run", "default", *words({**BASE, **keys}), f"dataset.num_files_train={500 * knee}", "train.epochs=1",
                           "workflow.generate_data=true", "workflow.evaluation=false", "-q", "-n", str(knee),
                           "-o", folder], capture_output=True, text=True, timeout=900, **surround)
    assert done.returncode == 0, done.stdout + done.stderr
    return time.monotonic() - begin


def report(name, truth, found, took, full):
    said, n = found["accelerators"], math.floor(truth)
    near = abs(said - n) <= max(1, 0.05 * n)
    high = math.inf if found["high_95"] is None else found["high_95"]
    holds = found["low_95"] <= n <= high
    print(f"{name:18} arithmetic {truth:6.2f}  found {said:3} ({found['low_95']} to {found['high_95']}, {'at least, ' if found['at_least'] else ''}"
          f"{found['cause']})  {'right' if near else 'WRONG'}  interval {'holds' if holds else 'MISSES'}  "
          f"{took:5.1f} s, {len(found['runs'])} runs" + (f", a full run {full:.1f} s: {took / full:.2f} times" if full else ""), flush=True)
    return near, holds, took / full if full else 0


def one(binary, name, timed):
    with tempfile.TemporaryDirectory() as tmp:
        if name in CASES:
            keys, truth = CASES[name]
            found, took = search(binary, keys, f"{tmp}/out", {})
            full = full_run(binary, keys, math.floor(truth), f"{tmp}/full", {}) if timed and truth >= 1 else 0
            return report(name, truth, found, took, full)
        limit, truth, store = LOOP[name]
        record = 1000000 if "bps" in limit else 100000
        with LoopDevice(3000) as device:
            keys = {"storage.store": store, "dataset.data_folder": f"{device.mount}/data", "dataset.record_length_bytes": record,
                    "train.computation_time": 0.1}
            need = TARGET / 0.1
            # O_DIRECT reads whole pages
            size = math.ceil((side(record) + HEADER) / 4096) * 4096
            rate = int(truth * need * (size if "bps" in limit else 1))
            group = device.group("blkio", **{f"blkio__throttle__read_{'bps' if 'bps' in limit else 'iops'}_device":
                                             f"{device.number()} {rate}"})
            if not group:
                raise Unavailable("there is no control group for block devices")
            surround = dict(preexec_fn=join([group]))
            found, took = search(binary, keys, f"{tmp}/out", surround)
            # of 500 steps, by the target's own arithmetic: the device is too small for their files
            return report(name, truth, found, took, 500 * 0.1 / TARGET if timed else 0)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("binary")
    args.add_argument("case", nargs="*")
    args.add_argument("--repeat", type=int, default=1)
    args.add_argument("--time", action="store_true", help="make the full run, too")
    args = args.parse_intermixed_args()
    binary, results = os.path.abspath(args.binary), []
    for name in args.case or [*CASES, *LOOP]:
        for _ in range(args.repeat):
            try:
                results.append(one(binary, name, args.time))
            except Unavailable as e:
                print(f"{name:18} left out: {e}")
    print(f"{sum(r[0] for r in results)} of {len(results)} right; the interval holds the truth in {sum(r[1] for r in results)}; "
          f"at most {max([r[2] for r in results] or [0]):.2f} times a full run")
    return 0 if all(r[0] for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
