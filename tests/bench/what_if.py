"""What a run says would change it, against a second real run with that change: AU over the whole run
predicted and measured, on throttled stores. Prints every case, and the median and worst error in points.

The base run tells each change itself (what_if of result.json); a change is then given to the program as
it is written there. Usage: what_if.py [cases of each base]"""
import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import load, stoker, tiny  # noqa: E402

EACH = int(sys.argv[1]) if len(sys.argv) > 1 else 20


def bases():
    t = dict(storage__store="throttle+memory", reader__prefetch_size=4, reader__read_threads=2, files=200,
             dataset__record_length_bytes=65536, train__computation_time=0.02)
    yield "bandwidth, 2 ranks", 2, dict(t, storage__throttle__bandwidth=9e6)
    yield "stream bandwidth", 1, dict(t, storage__throttle__stream_bandwidth=2e6,
                                      dataset__record_length_bytes_stdev=20000)
    yield "latency", 1, dict(t, storage__throttle__latency=0.008)
    yield "latency and bandwidth", 2, dict(t, storage__throttle__latency=0.003,
                                           storage__throttle__bandwidth=12e6)
    yield "opening", 1, dict(t, storage__throttle__open_latency=0.02)
    yield "varying latency", 1, dict(
        t, reader__read_threads=4, reader__access="native",
        storage__throttle__latency="{type: exponential, scale: 0.012}")
    yield "no workers", 1, dict(t, reader__read_threads=0, storage__throttle__latency=0.002)
    yield "preprocessing", 2, dict(t, files=400, reader__preprocess_time="{type: exponential, scale: 0.02}",
                                   storage__throttle__latency=0.001)


def run(name, ranks, keys, out, more=()):
    keys = dict(keys)
    files = keys.pop("files") * ranks
    stoker("run", *tiny("/what-if", out, "npy", files, **keys), *more, "-n", ranks)
    return load(out)


def main():
    errors, within = [], 0
    print(f"{'base':24} {'change':52} {'base':>6} {'said':>6} {'real':>6} {'off':>6} {'+-':>5}")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        for i, (name, ranks, keys) in enumerate(bases()):
            told = run(name, ranks, keys, os.path.join(tmp, f"{i}")).get("what_if")
            for j, c in enumerate(told["changes"][:EACH]):
                real = run(name, ranks, keys, os.path.join(tmp, f"{i}-{j}"), c["change"].split())
                au = real["training"]["whole_au_mean_percent"]
                off = c["whole_au_percent"] - au
                errors.append(abs(off))
                within += abs(off) <= c["error_points"]
                print(f"{name:24} {c['change']:52} {told['measured_whole_au_percent']:6.1f} "
                      f"{c['whole_au_percent']:6.1f} {au:6.1f} {off:6.1f} {c['error_points']:5.1f}", flush=True)
    print(f"{len(errors)} cases: median error {statistics.median(errors):.2f} points, worst {max(errors):.2f}; "
          f"{within} within the error that was told")


if __name__ == "__main__":
    main()
