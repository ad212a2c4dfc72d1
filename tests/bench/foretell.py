"""What a run without costs foretells of the framework's own code, against a second real run with
framework.costs=torch-1.13: whole-run AU foretold and measured, on throttled stores in memory. What is foretold must
come out within 3 points or within the stated interval; where nothing is said, AU must not fall by more than 5 points
(2 are not worth a line, and 3 may be wrong). A case that is off is measured again, both sides, and the middle one of
three counts. Usage: foretell.py [part of a name]"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import load, stoker, tiny  # noqa: E402

COSTS = "torch-1.13"
MIB = 1 << 20
NEAR, WORTH = 3, 2  # points


def case(name, ranks, workers, fmt, files, compute, size=MIB, epochs=2, batch=2, **keys):
    keys = {("storage__throttle__" + k if k in ("latency", "bandwidth", "open_latency", "concurrency") else k): v
            for k, v in keys.items()}
    base = dict(storage__store="throttle+memory", dataset__record_length_bytes=size, reader__batch_size=batch,
                reader__read_threads=workers, reader__prefetch_size=2 * workers, train__computation_time=compute,
                train__epochs=epochs, framework="pytorch", reader__data_loader="pytorch")
    return name, ranks, fmt, files * ranks, dict(base, **keys)


CASES = [
    case("compute-bound, 2 workers", 1, 2, "npz", 120, 0.05, bandwidth=400e6),
    case("compute-bound, 2 workers, 200 ms", 1, 2, "npz", 24, 0.2, bandwidth=400e6),
    case("worker-bound, 1 worker", 1, 1, "npz", 400, 0.004, size=4 * MIB, batch=1),
    case("bandwidth, 1 worker", 1, 1, "npz", 160, 0.02, bandwidth=60e6),
    case("bandwidth, 2 workers", 1, 2, "npz", 160, 0.02, bandwidth=60e6),
    case("bandwidth, 4 workers", 1, 4, "npz", 240, 0.02, bandwidth=100e6),
    case("bandwidth, no workers", 1, 0, "npz", 160, 0.02, bandwidth=200e6),
    case("latency, 2 workers", 1, 2, "npz", 240, 0.02, latency=0.002),
    case("latency, 2 ranks of 1 worker", 2, 1, "npz", 160, 0.02, latency=0.002),
    case("2 ranks of 2 workers, bandwidth", 2, 2, "npz", 160, 0.02, bandwidth=120e6),
    case("2 ranks of 4 workers, processors", 2, 4, "npz", 400, 0.004, size=4 * MIB, batch=1),
    case("preprocessing, 2 workers", 1, 2, "npz", 160, 0.02, reader__preprocess_time=0.015),
    case("4 steps, 4 workers", 1, 4, "npz", 8, 0.1, bandwidth=200e6),
    case("2 steps, 2 ranks of 2 workers", 2, 2, "npz", 4, 0.1, epochs=3, bandwidth=200e6),
    case("persistent workers, short epochs", 1, 4, "npz", 16, 0.03, epochs=4, bandwidth=200e6,
         reader__persistent_workers="true"),
    case("shared memory, 2 workers", 1, 2, "npz", 160, 0.01, bandwidth=400e6, reader__transport="shared_memory"),
    case("hdf5, 1 worker, bandwidth", 1, 1, "hdf5", 160, 0.02, bandwidth=60e6),
    case("hdf5, 2 workers", 1, 2, "hdf5", 200, 0.01, latency=0.001),
    case("png, 2 workers", 1, 2, "png", 80, 0.05, size=150000, batch=4),
    case("png, no workers", 1, 0, "png", 60, 0.05, size=150000),
    case("jpeg, 2 workers", 1, 2, "jpeg", 80, 0.05, size=150000, batch=4),
    case("csv, 2 workers", 1, 2, "csv", 60, 0.05, size=4096),
    case("csv, 4 workers", 1, 4, "csv", 120, 0.05, size=1024, latency=0.001),
    case("npy, 2 workers, bandwidth", 1, 2, "npy", 160, 0.02, bandwidth=60e6),
]


def run(one, out, costs):
    _, ranks, fmt, files, keys = one
    stoker("run", *tiny("/foretell", out, fmt, files, **keys), "-n", ranks, f"framework.costs={costs}")
    return load(out)


def pair(one, tmp):
    """AU without costs, what is foretold (or None), AU with them."""
    without, with_costs = (run(one, os.path.join(tmp, c), c) for c in ("none", COSTS))
    what = without["what_if"]
    au = [r["training"]["whole_run_au_percent"] for r in (without, with_costs)]
    return au[0], what.get("framework_costs"), au[1], what.get("why", "")


def judge(before, said, after):
    """How far off it is, in points, and whether that is right."""
    if not said:
        return before - after, before - after <= WORTH + NEAR
    off = said["whole_au_percent"] - after if "whole_au_percent" in said else 0
    inside = said["low_percent"] <= after <= said["high_percent"]
    return off, abs(off) <= NEAR or inside


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    wrong, near, said = [], 0, 0
    print(f"{'case':36} {'none':>6} {'foretold':>22} {'measured':>8} {'off':>6}")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        for one in CASES:
            if only not in one[0]:
                continue
            pairs = [pair(one, tmp)]
            if not judge(*pairs[0][:3])[1]:
                pairs += [pair(one, tmp) for _ in range(2)]
            middle = sorted(pairs, key=lambda p: judge(*p[:3])[0])[len(pairs) // 2]
            off, right = judge(*middle[:3])
            before, told, after, why = middle
            text = f"{told.get('whole_au_percent', float('nan')):.1f} ({told['low_percent']:.1f} to " \
                   f"{told['high_percent']:.1f})" if told else f"- {why[:40]}"
            print(f"{one[0]:36} {before:6.1f} {text:>22} {after:8.1f} {off:6.1f}{'' if right else '  OFF'}"
                  f"{f'  middle of {len(pairs)}' if len(pairs) > 1 else ''}", flush=True)
            said += told is not None
            near += abs(off) <= NEAR
            wrong += [] if right else [one[0]]
    print(f"{said} foretold; {near} within {NEAR} points; wrong: {wrong or 'none'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
