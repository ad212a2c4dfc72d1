"""Small runs foretell large ones: AU of 64, 256 and 1,024 ranks, from one run of at most 8 with a probe, against real
runs of those sizes (ranks are threads; they sleep), on throttled stores in memory: fixed, exponential and Pareto
latencies, a shared queue, ceilings of bandwidth and requests. Prints every case, with the baselines beside it: linear,
which is the small run's AU, and what the bytes/s ceiling alone would allow; and what one run of that size differs by from
the next (`runs`, one standard deviation), which no prediction can be better than. What is foretold should be within 3 points,
and its 95 % interval should hold the truth in 9 of 10 cases.
Usage: fleet.py [parts of names, between bars [ranks, between commas [runs at once [folder that is kept]]]]"""
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER, load, stoker  # noqa: E402

TOOL = os.path.join(os.path.dirname(STOKER), "tests", "fleet_from")
COMPUTE, STEPS, SMALL_STEPS = 0.8, 25, 80
MANY = 40  # steps, where a single long wait weighs much
KB = 1000


def exponential(s):
    return f"{{type: exponential, scale: {s}}}"


def pareto(shape, least):
    return f"{{type: pareto, shape: {shape}, min: {least}}}"


def case(name, latency, workers=1, batch=1, small=8, size=KB, compute=COMPUTE, prefetch=2, steps=STEPS,
         **throttle):
    keys = {"storage.throttle." + k: v for k, v in throttle.items()}
    keys.update({"storage.throttle.latency": latency, "reader.read_threads": workers, "reader.batch_size": batch,
                 "reader.prefetch_size": prefetch, "dataset.record_length_bytes": size,
                 "train.computation_time": compute})
    return name, small, batch, keys, steps


CASES = [
    case("fixed, hidden", 0.3),
    case("fixed, workers too slow", 1.2, small=4),
    case("fixed, no workers", 0.3, workers=0, small=2),
    case("exponential 0.25", exponential(0.25)),
    case("exponential 0.12", exponential(0.12)),
    case("exponential 0.5, 2 workers", exponential(0.5), workers=2),
    case("exponential, batches of 4", exponential(0.08), batch=4),
    case("exponential, no workers", exponential(0.12), workers=0),
    case("exponential 0.3, 4 ranks", exponential(0.3), small=4),
    case("Pareto 2, no workers", pareto(2, 0.01), workers=0, steps=MANY),
    case("Pareto 2.5, no workers", pareto(2.5, 0.02), workers=0, steps=MANY),
    case("Pareto 3, no workers", pareto(3, 0.05), workers=0, steps=MANY),
    case("Pareto 4, batches of 2, no workers", pareto(4, 0.08), batch=2, workers=0, steps=MANY),
    case("Pareto 3", pareto(3, 0.08), steps=MANY),
    case("queue of 8, fixed", 0.012, concurrency=8),
    case("queue of 16, exponential", exponential(0.025), concurrency=16),
    case("queue of 4, exponential", exponential(0.02), concurrency=4),
    case("bandwidth, fixed", 0.02, size=20 * KB, bandwidth=9e6),
    case("bandwidth, exponential", exponential(0.05), size=20 * KB, bandwidth=9e6),
    case("requests/s", 0.02, iops=500),
]


def run(one, ranks, steps, out, small):
    _, _, batch, keys, _ = one
    more = {"run.probe": "true", "run.probe_time": 20} if small else {}
    args = dict(keys, **more)
    args.update({"workflow.generate_data": "true", "workflow.evaluation": "false", "storage.store": "throttle+memory",
                 "dataset.format": "npz", "dataset.num_files_train": ranks * steps * batch, "reader.access": "native",
                 "train.epochs": 1, "run.watchdog": 0})
    stoker("run", "default", "-n", ranks, "-o", out, "-q", *(f"{k}={v}" for k, v in args.items()), timeout=600)


def foretell(out, steps, sizes):
    done = subprocess.run([TOOL, out, str(steps), *map(str, sizes)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{out}: {done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def measured(out):
    t = load(out)["training"]
    return t["au_mean_percent"], t["whole_run_au_percent"]


class Tally:
    def __init__(self):
        self.off, self.held, self.refused, self.linear, self.cap, self.lines, self.steady = [], 0, 0, [], [], 0, []

    def add(self, name, ranks, told, truth):
        self.lines += 1
        if not told["known"]:
            self.refused += 1
            print(f"{name:36} {ranks:5}   refused: {told['why']}", flush=True)
            return
        au, whole = truth
        off = told["whole_au"] - whole
        held = told["whole_low"] <= whole <= told["whole_high"]
        self.off.append(abs(off))
        self.held += held
        self.steady += [abs(off)] if told["whole_dev"] <= 1.5 else []
        self.linear.append(abs(told["linear"] - whole))
        self.cap.append(abs(told["cap"] - whole))
        print(f"{name:36} {ranks:5} {whole:7.1f} {told['whole_au']:7.1f} ({told['whole_low']:5.1f} to "
              f"{told['whole_high']:5.1f}) {off:6.1f} {told['whole_dev']:5.1f} {'' if held else 'OUT':3} {au:7.1f} {told['au']:7.1f} "
              f"{told['linear']:7.1f} {told['cap']:7.1f}  {told['limit']}", flush=True)

    def summary(self):
        n = len(self.off)
        if n == 0:
            return
        print(f"{n} foretold, {self.refused} refused: {sum(o <= 3 for o in self.off)} within 3 points (median "
              f"{statistics.median(self.off):.1f}, mean {statistics.mean(self.off):.1f}, worst {max(self.off):.1f}), "
              f"{sum(o <= 3 for o in self.steady)} of the {len(self.steady)} whose runs "
              f"differ by at most 1.5; {self.held} held by the interval ({100 * self.held / n:.0f} %); baselines: linear off by "
              f"{statistics.mean(self.linear):.1f} on average, {sum(o <= 3 for o in self.linear)} within 3; bytes/s cap by "
              f"{statistics.mean(self.cap):.1f}, {sum(o <= 3 for o in self.cap)} within 3")


def main():
    only = sys.argv[1].split("|") if len(sys.argv) > 1 else [""]
    sizes = [int(n) for n in sys.argv[2].split(",")] if len(sys.argv) > 2 else [64, 256, 1024]
    at_once = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    kept = sys.argv[4] if len(sys.argv) > 4 else None
    cases = [c for c in CASES if any(o in c[0] for o in only)]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        folder = kept or tmp
        tally = Tally()
        where = {(c[0], n): os.path.join(folder, f"{i}-{n}") for i, c in enumerate(CASES) for n in [0, *sizes]}
        # small runs sleep nearly all the time
        with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
            list(pool.map(lambda c: run(c, c[1], SMALL_STEPS, where[c[0], 0], True),
                          [c for c in cases if not os.path.exists(where[c[0], 0])]))
        print(f"{'store':36} {'ranks':>5} {'AU':>7} {'foretold':>24} {'off':>6} {'runs':>5} {'':3} {'DLIO':>7} {'told':>7} {'linear':>7} "
              f"{'cap':>7}")
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            runs = {(c[0], n): pool.submit(run, c, n, c[4], where[c[0], n], False)
                    for n in sizes for c in cases if not os.path.exists(where[c[0], n])}
            for n in sizes:
                for c in cases:
                    if (c[0], n) in runs:
                        runs[c[0], n].result()
                    tally.add(c[0], n, foretell(where[c[0], 0], c[4], [n])[0], measured(where[c[0], n]))
        tally.summary()
    return 0


if __name__ == "__main__":
    sys.exit(main())
