"""stoker survey against stoker capacity on the same stores: of known law in the program (throttle), behind a file system in
user space, and of a loop device under the kernel's limit. Printed for each: what the survey says with its interval, what
the search finds, and the rate that the search saw where the storage limited, in accelerators at the target.

    python3 tests/bench/survey.py BINARY [CASE ...]    without CASE all"""
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
from slow_fs import SlowFs  # noqa: E402

SMALL, LARGE = "retinanet_b200", "cosmoflow_h100"


def throttle(**keys):
    return ["reader.decode=none", "storage.store=throttle+memory", *[f"storage.throttle.{k}={v}" for k, v in keys.items()]]


# name: (workload, the store)
CASES = {
    "bandwidth": (LARGE, throttle(bandwidth=1.3e9)),
    "requests": (SMALL, throttle(iops=3000)),
    "latency": (SMALL, throttle(latency=0.008)),
    "opens": (SMALL, throttle(open_latency=0.01, open_concurrency=12)),
    "queue": (SMALL, throttle(latency=0.006, concurrency=8)),
    "latency_bandwidth": (LARGE, throttle(latency=0.003, bandwidth=1.5e9)),
    "requests_bandwidth": (SMALL, throttle(iops=4000, bandwidth=300e6)),
    "latency_random": (SMALL, throttle(latency="{scale: 0.004, type: exponential}", concurrency=6)),
    "stream": (LARGE, throttle(stream_bandwidth=50e6)),
}


def answer(argv, surround=None):
    begin = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, timeout=900, **surround or {})
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout), time.monotonic() - begin


def compare(binary, name, workload, store, folder, surround=None):
    said, quick = answer([binary, "survey", folder, "--only", workload, "--time", "30", "--json", "-q", *store], surround)
    found, slow = answer([binary, "capacity", workload, "--json", "-q", "--time", "12", "--max", "24", "-o", f"{folder}/out",
                          f"dataset.data_folder={folder}/data", "checkpoint.checkpoint_folder=" + f"{folder}/ckpt", *store], surround)
    row = next(r for r in said["workloads"] if r["workload"] == workload)
    low, high = row["low_95"], row.get("high_95", math.inf)
    n, top = found["accelerators"], math.inf if found["high_95"] is None else found["high_95"]
    # the search finds whole accelerators; the rate beyond the knee is a fraction of one
    rate = found["delivered_samples_per_s"] / (found["need_samples_per_s"] * found["target_percent"] / 100) if found["cause"] != "compute" else None
    whole = (math.isinf(high) or math.floor(high) >= found["low_95"]) and math.floor(low) <= top
    near = rate is not None and (abs(row["accelerators"] / rate - 1) <= 0.1 or low <= rate <= high)
    print(f"{name:19} survey {row['accelerators']:5.2f} ({low:.2f} to {high:.2f}, {row['limit']})  capacity {n} ({found['low_95']} to {top}, "
          f"{found['cause']}), rate {rate or 0:.2f}  {'agree' if whole or near else 'DIFFER'}{', rate too' if near else ''}  {quick:.0f} s, {slow:.0f} s", flush=True)
    return whole or near


def one(binary, name):
    with tempfile.TemporaryDirectory() as tmp:
        if name in CASES:
            return compare(binary, name, *CASES[name], tmp)
        if name == "loop_bandwidth":
            with LoopDevice(6000) as device:
                group = device.group("blkio", blkio__throttle__read_bps_device=f"{device.number()} {int(150e6)}")
                if not group:
                    raise Unavailable("there is no control group for block devices")
                return compare(binary, name, SMALL, ["reader.decode=none", "storage.store=posix"], str(device.mount), dict(preexec_fn=join([group])))
        pathlib.Path(tmp, "below").mkdir()
        with SlowFs(f"{tmp}/below", read_us=5000, direct=1) as mount:
            return compare(binary, name, SMALL, ["reader.decode=none", "storage.store=posix"], mount)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("binary")
    args.add_argument("case", nargs="*")
    args = args.parse_intermixed_args()
    agreed = []
    for name in args.case or [*CASES, "loop_bandwidth", "slow_fs"]:
        try:
            agreed.append(one(os.path.abspath(args.binary), name))
        except Unavailable as e:
            print(f"{name:19} left out: {e}")
        except RuntimeError as e:
            print(f"{name:19} no answer: {e}")
            agreed.append(False)
    print(f"{sum(agreed)} of {len(agreed)} agree")
    return 0 if all(agreed) else 1


if __name__ == "__main__":
    sys.exit(main())
