"""Known answers: measured AU against the analytic model and the reference simulation, over a store whose
speed is set (throttle+memory). AU must agree within 1 point; compute-bound runs must reach 99.5 %, of what the
machine leaves threads that meet after every sleep and do nothing else (tests/tools/lockstep_tool.c): 64 of them
that wake together wait for two processors.

The times of the reference vectors are stretched so that the lateness of this machine's timers is small
beside them; AU does not change when all times are scaled. A case that misses is repeated with its times
multiplied by four, so that the lateness of a busy machine's timers weighs less, and must be right in 3 of 4
attempts.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "..")]
from loader_sim import check_vectors, simulate  # noqa: E402
from told import told  # noqa: E402
from util import attempts  # noqa: E402

STOKER = os.environ["STOKER"]
SLOW = os.environ.get("STOKER_SANITIZE", "") != ""
POINTS = 1.0
SLOWEST = 4  # a repeated case's times are multiplied by this
COMPUTE_BOUND = 99.5  # nothing below it passes


def run(case, folder, more=()):
    """One run of the case; returns (AU by DLIO's definition, whole-run AU) in percent."""
    p = dict(R=1, W=1, P=2, b=1, nb=10, c=0.05, size=0, B=0, b1=0, lat=0.0, meta_ops=0, meta_lat=0.0,
             dec=0.0, Q=0)
    p.update(case)
    side = 1 if more else max(1, round(p["size"] ** 0.5))
    files = p["R"] * p["b"] * p["nb"]
    argv = [STOKER, "run", "default", "-n", str(p["R"]), "-q", "-o", folder,
            "workflow.generate_data=true", "workflow.evaluation=false", "storage.store=throttle+memory",
            "dataset.data_folder=/known", "dataset.num_subfolders_train=0", "dataset.num_files_eval=0",
            "dataset.format=npy", "reader.access=native", "reader.decode=none",
            f"dataset.num_files_train={files}", f"dataset.record_length_bytes={side * side}",
            f"reader.batch_size={p['b']}", f"reader.read_threads={p['W']}",
            f"reader.prefetch_size={p['P'] * p['W']}", "train.epochs=1",
            f"train.computation_time={p['c']}", f"reader.preprocess_time={p['dec']}",
            f"storage.throttle.bandwidth={p['B']:.0f}", f"storage.throttle.stream_bandwidth={p['b1']:.0f}",
            f"storage.throttle.latency={p['lat']}", f"storage.throttle.concurrency={p['Q']}",
            f"storage.throttle.open_latency={p['meta_ops'] * p['meta_lat']}", *more]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{argv}\n{done.stdout}{done.stderr}"
    with open(os.path.join(folder, "result.json")) as f:
        result = json.load(f)
    with open(os.path.join(folder, "summary.json")) as f:
        summary = json.load(f)
    return summary["metric"]["train_au_mean_percentage"], result["training"]["whole_run_au_percent"]


def slowed(case, k):
    """The case with all its times multiplied by k: the same AU."""
    p = dict(case)
    for key in ("c", "lat", "meta_lat", "dec", "startup", "collate", "d"):
        if key in p:
            p[key] *= k
    for key in ("B", "b1"):
        if key in p:
            p[key] /= k
    return p


def stretched(vector, k):
    p = slowed(vector["params"], k)
    # smaller samples, the same times: the memory of this machine is not what is measured
    shrink = p["size"] / 65536.0
    for key in ("size", "B", "b1"):
        if key in p:
            p[key] /= shrink
    return p


def cases():
    vectors = json.load(open(os.path.join(os.path.dirname(__file__),
                                          "../data/vectors/loader-sim-vectors.json")))
    for v in vectors:
        p = stretched(v, 12)
        # hand-over and start-up costs are not emulated: take them out of both sides
        for key in ("collate", "d", "startup"):
            p.pop(key, None)
        if p.get("Q"):
            # who of several ranks is served first in the very first step is left to the scheduler; a
            # longer epoch makes that step's barrier, which stays in DLIO's window, small
            p["nb"] *= 4
        expected = simulate(**p)["dlio_AU"]
        if "share" in v["name"] or "barrier" in v["name"]:
            # The vector's workers share the bandwidth in lockstep, which is unstable: any lateness of a
            # timer moves them apart, and then one decodes while another reads. The right answers are
            # those of the simulation from no lateness to that of a busy machine.
            late = [simulate(**p, jitter=j, seed=n)["dlio_AU"] for j in (5e-5, 2e-4, 1e-3) for n in range(10)]
            expected = (min(expected, *late), max(expected, *late))
        yield "vector: " + v["name"], p, expected
    for ranks in (1, 4, 64):
        size = 16384
        yield (f"compute-bound, {ranks} ranks",
               dict(R=ranks, W=1, P=2, b=1, nb=12, c=0.25, size=size, lat=0.01), None)
        # T = R*b*size/B = 2c: AU 50 %
        p = dict(R=ranks, W=2, P=2, b=1, nb=16, c=0.12, size=size, B=ranks * size / 0.24)
        yield f"bandwidth-bound, {ranks} ranks", p, simulate(**p)["dlio_AU"]
        # T = S/W = b*lat/W: AU c*W/(b*lat)
        p = dict(R=ranks, W=2, P=2, b=2, nb=14, c=0.1, size=size, B=1e15, lat=0.16)
        yield f"latency-bound, {ranks} ranks", p, simulate(**p)["dlio_AU"]
        # T = c + S
        p = dict(R=ranks, W=0, P=2, b=2, nb=10, c=0.15, size=size, B=1e15, lat=0.05)
        yield f"zero workers, {ranks} ranks", p, 100 * 0.15 / 0.25


def drawn_sizes(files, length, stdev):
    """The sizes of the files that generation draws (NumPy's legacy generator, seed 10)."""
    import numpy
    rng = numpy.random.RandomState(10)
    dims = numpy.maximum(rng.normal(int(length ** 0.5), stdev / 2 / length ** 0.5, 2 * files).astype(int), 1)
    return [int(a) * int(b) + 128 for a, b in zip(dims[0::2], dims[1::2])]


def stall_cases():
    """In-order delivery: a batch that takes long holds back batches that are ready. Files of very
    different sizes at a set rate a stream make the service times known exactly."""
    for ranks, workers, prefetch in ((1, 4, 1), (1, 8, 2), (4, 4, 1)):
        steps, length, stdev, c = 40, 65536, 60000, 0.06
        sizes = drawn_sizes(ranks * steps, length, stdev)
        mean = sum(sizes) / len(sizes)
        b1 = mean / (workers * c)  # on average the workers are just fast enough
        p = dict(R=ranks, W=workers, P=prefetch, b=1, nb=steps, c=c, size=sizes, B=0, b1=b1)
        yield (f"in-order stall, {ranks} ranks, {workers} workers", p, simulate(**p)["dlio_AU"],
               [f"dataset.record_length_bytes={length}", f"dataset.record_length_bytes_stdev={stdev}"])


def lockstep(case):
    """The AU in percent of a bare loop like this case."""
    argv = [os.path.join(os.environ["STOKER_TOOLS"], "lockstep_tool"), *(str(case[k]) for k in ("R", "nb", "c", "lat"))]
    return float(subprocess.run(argv, capture_output=True, text=True, check=True, timeout=300).stdout)


def measure(tmp, i, attempt, name, case, expected, *more):
    """One attempt at a case; returns (whether it agrees, its line of the table)."""
    case = slowed(case, SLOWEST if attempt else 1)
    before = lockstep(case) if expected is None and attempt else 100.0
    au, whole = run(case, os.path.join(tmp, f"{i}-{attempt}"), *more)
    low, high = expected if isinstance(expected, tuple) else (expected, expected)
    if expected is None:
        bound = COMPUTE_BOUND
        if au < bound:
            bare = min(before, lockstep(case))
            print(f"   {name}: AU {au:.2f} %, of a bare loop {bare:.2f} %", flush=True)
            bound *= bare / 100
        low, high = bound + POINTS, 100.0 + POINTS
    off = au - low if au < low else max(0.0, au - high)
    wanted = ">= 99.5" if expected is None else f"{low:.2f}" if low == high else f"{low:.1f}-{high:.1f}"
    ok = abs(off) <= POINTS
    if "vector" not in name:
        workers = "" if "workers" in name else f", {case['W']} worker{'s' * (case['W'] != 1)} each"
        told("Known answers", f"{name.replace('1 ranks', '1 rank')}{workers}: the model says AU "
             + (">= 99.5 %" if expected is None else f"{low:.1f} %"), f"AU {au:.1f} % (whole-run {whole:.1f} %)")
    return ok, f"{name:38} {wanted:>9} {au:9.2f} {off:6.2f}   {whole:6.2f}  {'' if ok else 'MISSED'}"


def main():
    check_vectors()
    every = list(enumerate([*cases(), *stall_cases()]))
    print(f"{'case':38} {'expected':>9} {'measured':>9} {'off':>6}   whole-run")
    with tempfile.TemporaryDirectory() as tmp:
        # Nearly all of a run is waiting: two small ones at a time, many ranks alone, and alone whatever
        # has missed.
        with concurrent.futures.ThreadPoolExecutor(2) as two:
            small = {i: two.submit(measure, tmp, i, 0, *case) for i, case in every if case[1]["R"] < 64}
            done = {i: future.result() for i, future in small.items()}
        misses = 0
        for i, case in every:
            ok, line = attempts(case[0], lambda n: measure(tmp, i, n, *case), done.get(i))
            print(line, flush=True)
            misses += not ok
    if SLOW:
        print("under a sanitizer the figures are only shown")
        return 0
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
