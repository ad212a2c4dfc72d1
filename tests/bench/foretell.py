"""What a run without costs foretells of the framework's own code, against a second real run with
framework.costs=torch-1.13, and what that one says of a run without: whole-run AU foretold and measured, on throttled
stores in memory. What is foretold must come out within 3 points or within the stated interval; where nothing is said,
AU must not differ by more than 5 points (2 are not worth a line, and 3 may be wrong). A case that is off is measured
again, both sides, and the middle one of three counts. Usage: foretell.py [parts of names, between bars]"""
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
    case("csv of 16 KiB, 2 workers", 1, 2, "csv", 24, 0.05, size=16384),
    case("csv, no workers", 1, 0, "csv", 40, 0.05, size=4096),
    case("hdf5, 2 workers, bandwidth", 1, 2, "hdf5", 160, 0.02, bandwidth=60e6),
    case("hdf5, no workers", 1, 0, "hdf5", 80, 0.02, open_latency=0.004),
    case("npy, 2 workers, bandwidth", 1, 2, "npy", 160, 0.02, bandwidth=60e6),
    case("npy, 1 worker, preprocessing", 1, 1, "npy", 80, 0.02, reader__preprocess_time=0.01),
    case("jpeg, no workers", 1, 0, "jpeg", 60, 0.05, size=150000),
    case("npz of 4 samples a file, 2 workers", 1, 2, "npz", 40, 0.02, bandwidth=400e6, dataset__num_samples_per_file=4),
]


def run(one, out, costs):
    _, ranks, fmt, files, keys = one
    stoker("run", *tiny("/foretell", out, fmt, files, **keys), "-n", ranks, f"framework.costs={costs}")
    return load(out)


class Side:
    """One run: its AU, what it says of the other side, and why it may say nothing."""

    def __init__(self, r):
        what = r["what_if"]
        self.au, self.said = r["training"]["whole_run_au_percent"], what.get("framework_costs")
        self.why = "" if what["known"] else what["why"]

    def off(self, other):
        """How far off it is, in points, and whether that is right."""
        if not self.said:
            return self.au - other.au, abs(self.au - other.au) <= WORTH + NEAR
        off = self.said["whole_au_percent"] - other.au if "whole_au_percent" in self.said else 0
        return off, abs(off) <= NEAR or self.said["low_percent"] <= other.au <= self.said["high_percent"]

    def text(self):
        if not self.said:
            return f"- {self.why[:20]}"
        figure = f"{self.said['whole_au_percent']:.1f} " if "whole_au_percent" in self.said else ""
        return f"{figure}({self.said['low_percent']:.1f} to {self.said['high_percent']:.1f})"


def pair(one, tmp):
    """(without costs, with them)"""
    return [Side(run(one, os.path.join(tmp, c), c)) for c in ("none", COSTS)]


def right(sides):
    return [a.off(b)[1] for a, b in (sides, sides[::-1])]


def main():
    only = sys.argv[1].split("|") if len(sys.argv) > 1 else [""]
    wrong, near, said = [], 0, 0
    print(f"{'case':36} {'none':>6} {'with costs, foretold':>22} {'real':>6} {'off':>6}   {'without, foretold':>22} {'off':>6}")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        for one in CASES:
            if not any(o in one[0] for o in only):
                continue
            pairs = [pair(one, tmp)]
            if not all(right(pairs[0])):
                pairs += [pair(one, tmp) for _ in range(2)]
            none, costs = sorted(pairs, key=lambda p: p[0].off(p[1])[0])[len(pairs) // 2]
            ahead, back = none.off(costs), costs.off(none)
            tail = "" if ahead[1] and back[1] else "  OFF"
            tail += f"  middle of {len(pairs)}" if len(pairs) > 1 else ""
            print(f"{one[0]:36} {none.au:6.1f} {none.text():>22} {costs.au:6.1f} {ahead[0]:6.1f}   {costs.text():>22} "
                  f"{back[0]:6.1f}{tail}", flush=True)
            said += none.said is not None
            near += abs(ahead[0]) <= NEAR
            wrong += [] if ahead[1] and back[1] else [one[0]]
    print(f"{said} foretold; {near} within {NEAR} points; wrong: {wrong or 'none'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
