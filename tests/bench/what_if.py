"""What a run says would change it, against a second real run with that change: AU over the whole run
predicted and measured, on throttled stores in memory. Prints every case - a change that the program says
it cannot tell the effect of stands there with its interval, and is counted - and the median and the worst
error in points.

The base run tells each change itself (what_if of result.json); it is given to the program as it is written
there, and the storage in words is made so. Usage: what_if.py [part of a base's name [part of a change]]"""
import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import load, stoker, tiny  # noqa: E402

THROTTLE = ("latency", "open_latency", "bandwidth", "stream_bandwidth")


def bases():
    t = dict(storage__store="throttle+memory", reader__prefetch_size=4, reader__read_threads=2, files=200,
             dataset__record_length_bytes=65536, dataset__record_length_bytes_stdev=16000,
             train__computation_time=0.02)
    yield "latency", 1, dict(t, latency=0.008)
    yield "latency, 2 ranks", 2, dict(t, latency=0.004, reader__read_threads=3, reader__prefetch_size=6)
    yield "varying latency", 1, dict(t, reader__read_threads=4, reader__prefetch_size=8,
                                     reader__access="native", files=400,
                                     storage__throttle__latency="{type: exponential, scale: 0.012}")
    yield "shared bandwidth", 2, dict(t, bandwidth=9e6)
    yield "shared, 4 ranks", 4, dict(t, bandwidth=27e6, reader__read_threads=1, reader__prefetch_size=2)
    yield "stream bandwidth", 1, dict(t, stream_bandwidth=2e6)
    yield "latency and shared", 2, dict(t, latency=0.003, bandwidth=12e6)
    yield "latency and stream", 1, dict(t, latency=0.002, stream_bandwidth=5e6)
    yield "hdf5, latency, shared", 1, dict(t, fmt="hdf5", latency=0.002, bandwidth=20e6,
                                           dataset__record_length_bytes_stdev=0)
    yield "npz, latency", 1, dict(t, fmt="npz", latency=0.002, bandwidth=30e6)
    yield "opening", 1, dict(t, open_latency=0.02)
    yield "no workers", 1, dict(t, reader__read_threads=0, latency=0.002, bandwidth=20e6)
    yield "preprocessing", 2, dict(t, files=400, reader__preprocess_time="{type: exponential, scale: 0.02}",
                                   latency=0.001)
    yield "decoding", 1, dict(t, fmt="jpeg", dataset__record_length_bytes=1600000, reader__read_threads=1,
                              dataset__record_length_bytes_stdev=0, reader__prefetch_size=2,
                              latency=0.0001, train__computation_time=0.016)
    yield "one size, in step", 2, dict(t, bandwidth=9e6, dataset__record_length_bytes_stdev=0)


def run(name, ranks, keys, out, change=""):
    keys = dict(keys)
    more = []
    if change == "twice the ranks":
        ranks *= 2
    elif change == "half the storage's latency":
        for k in ("latency", ):
            keys[k] = keys.get(k, 0) / 2
        v = keys.get("storage__throttle__latency")
        if v:
            keys["storage__throttle__latency"] = v.replace("0.012", "0.006")
    elif change == "twice the storage's bandwidth":
        for k in ("bandwidth", "stream_bandwidth"):
            keys[k] = keys.get(k, 0) * 2
    else:
        more = change.split()
    for k in THROTTLE:
        if keys.get(k):
            keys["storage__throttle__" + k] = keys[k]
        keys.pop(k, None)
    files = keys.pop("files") * ranks
    stoker("run", *tiny("/what-if", out, keys.pop("fmt", "npy"), files, **keys), *more, "-n", ranks)
    return load(out)


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    change = sys.argv[2] if len(sys.argv) > 2 else ""
    errors, within, unsaid = [], 0, 0
    print(f"{'base':22} {'change':48} {'base':>6} {'said':>6} {'low':>6} {'high':>6} {'real':>6} {'off':>6}")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        for i, (name, ranks, keys) in enumerate(bases()):
            if only not in name:
                continue
            told = run(name, ranks, keys, os.path.join(tmp, f"{i}"))["what_if"]
            for j, c in enumerate(told["changes"]):
                if change not in c["change"]:
                    continue
                real = run(name, ranks, keys, os.path.join(tmp, f"{i}-{j}"), c["change"])
                au = real["training"]["whole_au_mean_percent"]
                line = (f"{name:22} {c['change']:48} {told['measured_whole_au_percent']:6.1f} "
                        f"%6s {c['low_percent']:6.1f} {c['high_percent']:6.1f} {au:6.1f}")
                within += c["low_percent"] <= au <= c["high_percent"]
                if "whole_au_percent" in c:
                    off = c["whole_au_percent"] - au
                    errors.append(abs(off))
                    print(line % f"{c['whole_au_percent']:.1f}", f"{off:6.1f}", flush=True)
                else:
                    unsaid += 1
                    print(line % "-", "cannot say", flush=True)
    print(f"{len(errors)} cases: median error {statistics.median(errors):.2f} points, worst {max(errors):.2f}; "
          f"{unsaid} more of which the program says that it cannot say; {within} of all "
          f"{len(errors) + unsaid} within the interval")


if __name__ == "__main__":
    main()
