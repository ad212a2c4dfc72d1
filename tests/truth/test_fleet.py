"""AU of 48 ranks is foretold from a run of 6 and compared with a real run of 48, on throttled stores in memory: latencies
that are fixed, exponential and Pareto, a queue, a bandwidth, and a tail that reading ahead hides in part. The figure
must be near, and the interval must hold the truth. (tests/bench/fleet.py goes to 1,024.)"""
# beside one
# tier: long
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER, attempts, load, stoker  # noqa: E402

TOOL = os.path.join(os.environ.get("STOKER_TOOLS", os.path.join(os.path.dirname(STOKER), "tests")), "fleet_from")
SMALL, SMALL_STEPS, RANKS, STEPS = 6, 40, 48, 20
NEAR = 5  # points, and two deviations of runs from each other
HELD = 3  # where the interval is narrower, and other programs have the processors


def case(name, latency, compute=0.2, workers=0, size=1000, **throttle):
    keys = {"storage.throttle." + k: v for k, v in throttle.items()}
    return name, dict(keys, **{"storage.throttle.latency": latency, "reader.read_threads": workers,
                               "dataset.record_length_bytes": size, "train.computation_time": compute})


# the last figure: AU by the formula, where there is one
CASES = [
    (*case("fixed latency of 100 ms", 0.1), 200 / 3),
    (*case("exponential latency, 40 ms", "{type: exponential, scale: 0.04}"), 100 * 0.2 / (0.2 + 0.04 * 4.459)),
    (*case("Pareto latency of index 4, 50 ms or more", "{type: pareto, shape: 4, min: 0.05}"), None),
    (*case("one request at a time, 10 ms each", 0.01, workers=1, concurrency=1), 100 * 0.2 / 0.48),
    (*case("2 MB/s for 20 KB a step", 0.01, workers=1, size=20000, bandwidth=2e6), None),
    (*case("exponential latency, 100 ms, read ahead", "{type: exponential, scale: 0.1}", workers=1), None),
]


def run(keys, ranks, steps, out, probe):
    keys = dict(keys, **{"workflow.generate_data": "true", "workflow.evaluation": "false",
                         "storage.store": "throttle+memory", "dataset.num_files_train": ranks * steps,
                         "reader.batch_size": 1, "reader.prefetch_size": 2, "reader.access": "native",
                         "train.epochs": 1, "run.probe": str(probe).lower(), "run.probe_time": 3})
    stoker("run", "default", "-n", ranks, "-o", out, "-q", *(f"{k}={v}" for k, v in keys.items()))
    return load(out)


def foretell(out):
    done = subprocess.run([TOOL, out, str(STEPS), str(RANKS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def once(one, tmp):
    """(whether what is foretold is right, what it is and was)"""
    name, keys, formula = one
    folder = tempfile.mkdtemp(dir=tmp)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(run, keys, *w) for w in ((SMALL, SMALL_STEPS, os.path.join(folder, "small"), True),
                                                     (RANKS, STEPS, os.path.join(folder, "large"), False))]
        small, large = (r.result() for r in runs)
    said = foretell(os.path.join(folder, "small"))
    before, after = (r["training"]["whole_run_au_percent"] for r in (small, large))
    text = (f"{name}: {before:.1f} % with {SMALL} ranks; with {RANKS} foretold {said['whole_au']:.1f} % "
            f"({said['whole_low']:.1f} to {said['whole_high']:.1f}), measured {after:.1f} %")
    off = abs(said["whole_au"] - after)
    right = said["known"] and (said["whole_low"] <= after <= said["whole_high"] or off <= HELD)
    right = right and off <= NEAR + 2 * said["whole_dev"]
    right = right and said["whole_high"] - said["whole_low"] <= 40
    if formula:
        right = right and abs(said["whole_au"] - formula) <= NEAR
    return right, text


def main():
    wrong = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp, concurrent.futures.ThreadPoolExecutor(len(CASES)) as pool:
        # they sleep nearly all the time
        firsts = [(c, pool.submit(once, c, tmp)) for c in CASES]
        for one, first in firsts:
            right, text = attempts(one[0], lambda n, one=one: once(one, tmp), first.result())
            print(text, flush=True)
            wrong += [] if right else [one[0]]
    assert not wrong, f"wrong: {wrong}"


if __name__ == "__main__":
    main()
