"""Virtual time equals real time: the same configurations by `stoker run` over a store in memory that sleeps, and by the
loaders' own code in virtual time over a model that takes the times of that store. AU must agree within 0.5 points, and
each worker must have read the same samples in the same order, each rank got the same batches in the same order."""
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from util import SANITIZED, STOKER, attempts, skip  # noqa: E402

TOOL = pathlib.Path(os.environ.get("STOKER_TOOLS", "build/tests")) / "virtual_tool"
POINTS = 0.5
AT_ONCE = 10
NOMINAL = "--nominal" in sys.argv
EARLY_POINTS, LATE_POINTS = 1, 8  # that a run may be better and worse than the model of its store: lateness makes it worse
# With many ranks, each step waits for the one of them that got a processor latest, of which the times of reads and
# computations know nothing.
FEW_RANKS, MANY_LATE_POINTS = 8, 3
MORE_READ = 8  # samples that a thread may have read beyond what an epoch needed when it was called off
KEYS = {"storage.store": "throttle+memory", "workflow.generate_data": "true", "workflow.evaluation": "false",
        "reader.access": "native", "dataset.format": "npy", "dataset.data_folder": "/virtual", "train.epochs": 1,
        "dataset.record_length_bytes": 4096, "dataset.num_samples_per_file": 1, "reader.prefetch_size": 0}
SHORT = {"b": "reader.batch_size", "w": "reader.read_threads", "p": "reader.prefetch_size", "c": "train.computation_time",
         "loader": "reader.data_loader", "epochs": "train.epochs", "per": "dataset.num_samples_per_file",
         "fmt": "dataset.format", "pre": "reader.preprocess_time", "calls": "reader.computation_threads"}


class Case:
    """`latency`: of a request, one for each sample, s. `steps` of an epoch. `sizes`: files differ, and a request moves
    `rate` bytes/s. `whole`: the model is asked for batches, not samples. `servers`: requests at once."""

    def __init__(self, name, ranks, steps, latency, whole=False, rate=0, servers=0, samples=None, **keys):
        self.name, self.ranks, self.whole, self.in_order = name, ranks, whole, True
        self.keys = dict(KEYS)
        self.tf = keys.get("loader") == "tensorflow"
        if self.tf:
            self.keys["framework"] = "tensorflow"
        for k, v in keys.items():
            self.keys[SHORT.get(k, k.replace("__", "."))] = v
        b, per = self.keys["reader.batch_size"], self.keys["dataset.num_samples_per_file"]
        self.samples = samples or ranks * steps * b
        assert self.samples % per == 0, name
        self.keys["dataset.num_files_train"] = self.samples // per
        self.keys["storage.throttle.latency"] = latency
        self.model = f"{'batch' if whole else 'sample'}:{latency}"
        if rate:
            self.keys["storage.throttle.stream_bandwidth"] = rate
            self.keys["dataset.record_length_bytes_stdev"] = self.keys["dataset.record_length_bytes"] // 3
            self.model += f"/{rate}"
        if servers:
            self.keys["storage.throttle.concurrency"] = servers
            self.model += f"@{servers}"
        # the wait after a sample is late as reading is, and then taken as a part of it
        self.waits = not self.tf and "reader.preprocess_time" in self.keys
        self.in_order = self.keys.get("reader.in_order") != "false"

    def overrides(self):
        return [f"{k}={v}" for k, v in self.keys.items()]


OUT = {"reader.in_order": "false"}
TF = {"loader": "tensorflow"}
TFR = {"loader": "tensorflow", "fmt": "tfrecord", "reader.shuffle_size": 16}
ND = {"loader": "native_dali", "reader.dont_use_mmap": "true"}
NORMAL = "{mean: 0.1, stdev: 0.02}"
CASES = [
    # PyTorch, in order
    Case("pytorch, no worker", 1, 24, 0.03, b=2, w=0, c=0.04),
    Case("pytorch, no worker, 4 ranks, files of 4 samples", 4, 16, 0.02, b=4, w=0, c=0.08, per=4),
    Case("pytorch, 1 worker", 1, 24, 0.05, b=2, w=1, c=0.05),
    Case("pytorch, 2 workers, batches at once", 2, 24, 0.04, whole=True, b=4, w=2, c=0.08),
    Case("pytorch, 3 workers, prefetch 6, drawn computation", 2, 20, 0.07, b=3, w=3, p=6, c=NORMAL),
    Case("pytorch, 4 workers, 8 ranks", 8, 16, 0.1, b=4, w=4, c=0.1),
    Case("pytorch, 4 workers, 8 ranks, drawn computation, sizes", 8, 18, 0.05, rate=80e3, b=4, w=4, c=NORMAL),
    Case("pytorch, 8 workers, prefetch 1 each", 1, 40, 0.2, b=2, w=8, p=8, c=0.05),
    Case("pytorch, 2 workers, 64 ranks, batches at once", 64, 14, 0.2, whole=True, b=2, w=2, c=0.25),
    Case("pytorch, 1 worker, 32 ranks", 32, 14, 0.1, b=2, w=1, c=0.25),
    Case("pytorch, 2 workers, 16 ranks, shuffled by a list", 16, 14, 0.15, b=2, w=2, c=0.2, reader__sample_shuffle="seed",
         reader__order="distributed"),
    Case("pytorch, two epochs, workers that live on", 2, 12, 0.06, b=2, w=2, c=0.08, epochs=2,
         reader__persistent_workers="true"),
    Case("pytorch, two epochs, workers that start anew", 2, 12, 0.06, b=2, w=2, c=0.08, epochs=2,
         reader__worker_start_time=0.1, reader__worker_init_time=0.15, reader__persistent_workers="false"),
    Case("pytorch, thread that pins, transport", 2, 20, 0.05, b=3, w=2, c=0.06, reader__pin_thread="true",
         reader__transport="shared_memory"),
    Case("pytorch, preprocessing", 1, 20, 0.03, b=2, w=2, c=0.13, pre="{mean: 0.12, stdev: 0.02}"),
    Case("pytorch, preprocessing, batches at once", 1, 20, 0.03, whole=True, b=2, w=2, c=0.13,
         pre="{mean: 0.12, stdev: 0.02}"),
    Case("pytorch, files of 5 samples, shuffled files", 2, 20, 0.04, b=5, w=2, c=0.08, per=5, reader__file_shuffle="seed"),
    # and out of order: files differ
    Case("pytorch, out of order, 2 workers", 1, 30, 0.05, rate=20e3, b=1, w=2, c=0.06, **OUT),
    Case("pytorch, out of order, 4 workers, prefetch 12", 2, 24, 0.09, rate=10e3, b=1, w=4, p=12, c=0.08, **OUT),
    Case("pytorch, out of order, 8 workers", 2, 24, 0.14, rate=8e3, b=2, w=8, c=0.07, **OUT),
    # DALI's external source
    Case("dali, no worker", 1, 24, 0.03, loader="dali", b=2, w=0, c=0.06),
    Case("dali, 1 worker, prefetch 4", 2, 20, 0.05, loader="dali", b=2, w=1, p=4, c=0.06),
    Case("dali, 3 workers, 5 samples", 2, 20, 0.06, loader="dali", b=5, w=3, c=0.1),
    Case("dali, 4 workers, 8 ranks, sizes", 8, 16, 0.08, rate=60e3, loader="dali", b=4, w=4, c=0.12),
    Case("dali, 8 workers, 3 samples, runs at once", 1, 30, 0.15, whole=True, loader="dali", b=3, w=8, c=0.06),
    # tf.data: records, generators
    Case("tensorflow, records, no reader", 1, 20, 0.03, b=2, w=0, c=0.06, per=8, **TFR),
    Case("tensorflow, records, 1 reader", 2, 20, 0.03, b=4, w=1, c=0.08, per=10, **TFR),
    Case("tensorflow, records, 2 readers, map, prefetch", 2, 20, 0.06, b=4, w=2, p=2, c=0.1, per=10, calls=2, **TFR),
    Case("tensorflow, records, 4 readers, shuffled", 2, 20, 0.09, b=4, w=4, p=3, c=0.07, per=10,
         reader__sample_shuffle="seed", **TFR),
    Case("tensorflow, records, calls of map that wait", 1, 20, 0.02, b=2, w=1, p=2, c=0.08, per=10, calls=3, pre=0.06, **TFR),
    Case("tensorflow, records, 16 ranks", 16, 10, 0.06, b=4, w=1, p=1, c=0.2, per=10, **TFR),
    Case("tensorflow, 1 generator", 2, 20, 0.05, b=2, w=1, p=1, c=0.07, **TF),
    Case("tensorflow, 3 generators", 2, 24, 0.07, b=3, w=3, p=2, c=0.09, **TF),
    # DALI's own readers
    Case("native_dali, processed when asked for", 1, 20, 0.03, b=2, w=0, c=0.06, **ND),
    Case("native_dali, 2 threads, prefetch 3", 2, 20, 0.03, b=3, w=2, p=3, c=0.1, **ND),
    Case("native_dali, shuffle buffer", 4, 16, 0.03, b=3, w=2, p=2, c=0.08, reader__sample_shuffle="seed",
         reader__shuffle_size=10, **ND),
    Case("native_dali, tfrecord, 8 ranks", 8, 12, 0.04, fmt="tfrecord", b=4, w=1, p=1, c=0.2, per=6, **ND),
    # and without reading; a storage that serves few at once
    Case("synthetic, drawn computation", 8, 20, 0.1, loader="synthetic", b=2, w=0, c=NORMAL),
    Case("pytorch, 3 requests at once for 2 ranks of 3 workers", 2, 20, 0.04, servers=3, b=3, w=3, c=0.12),
    Case("dali, 6 requests at once for 4 ranks", 4, 16, 0.04, servers=6, loader="dali", b=4, w=2, c=0.15),
]


Run = collections.namedtuple("Run", "au reads batches")


class Trace:
    """Of the real run: samples by (rank, worker) in the order in which they were read, with their times; batches by
    (rank, epoch) in the order in which they were ready, with who read them; computing and training of ranks."""

    def __init__(self, folder, with_waits):
        events = json.loads((folder / "trace.json").read_text())["traceEvents"]
        worker = {}
        for e in events:
            if e["ph"] == "M" and e["name"] == "thread_name":
                words = e["args"]["name"].split()
                worker[e["pid"], e["tid"]] = int(words[-1]) if words[-2:-1] == ["worker"] else 0
        self.reads, self.batches = collections.defaultdict(list), collections.defaultdict(list)
        self.computes, self.trained = collections.defaultdict(list), collections.defaultdict(float)
        for e in sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"]):
            rank, args = e["pid"] - 1, e["args"]
            at = rank, worker.get((e["pid"], e["tid"]), 0)
            if e["name"] == ("item" if with_waits else "sample"):
                self.reads[at].append((args["sample"], e["dur"], (args.get("epoch"), args.get("step"))))
            elif e["name"] == "batch":
                self.batches[rank, args["epoch"]].append((e["ts"] + e["dur"], args["step"] - 1, at[1]))
            elif e["name"] == "compute":
                self.computes[rank].append(e["dur"])
            elif e["name"] == "train":
                self.trained[rank] += e["dur"]

    def run(self):
        """With AU as the times of steps have it: what a rank was late for in computing counts."""
        au = [100 * sum(self.computes[r]) / self.trained[r] for r in self.trained]
        return Run(sum(au) / len(au), {k: [s for s, *_ in v] for k, v in self.reads.items()},
                   {k: [(b, w) for _, b, w in sorted(v)] for k, v in self.batches.items()})

    def write_times(self, path, whole):
        lines = [f"c {rank} {round(us * 1e3)}" for rank, all_us in self.computes.items() for us in all_us]
        for (rank, worker), read in self.reads.items():
            times = collections.OrderedDict()
            for i, (_, us, batch) in enumerate(read):
                times[batch if whole else i] = times.get(batch if whole else i, 0) + us
            lines += [f"r {rank} {worker} {round(us * 1e3)}" for us in times.values()]
        path.write_text("".join(line + "\n" for line in lines))


def run_real(case, folder):
    """(AU, what its trace has)"""
    done = subprocess.run([STOKER, "run", "default", "-n", str(case.ranks), *case.overrides(), "run.trace=chrome",
                           "-o", str(folder)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{case.name}: {done.stderr}{done.stdout}"
    result = json.loads((folder / "result.json").read_text())
    return result["training"]["whole_run_au_percent"], Trace(folder, case.waits)


def run_virtual(case, folder, times=None):
    env = dict(os.environ, VIRTUAL_STEPS=str(folder / "steps"), VIRTUAL_READS=str(folder / "reads"))
    more = []
    if times:
        env["VIRTUAL_TIMES"] = str(times)
        more = ["reader.preprocess_time=0"] * case.waits
    done = subprocess.run([TOOL, "default", str(case.ranks), "0", case.model, *case.overrides(), *more],
                          capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, f"{case.name}: {done.stderr}"
    reads, batches = collections.defaultdict(list), collections.defaultdict(list)
    for line in (folder / "reads").read_text().splitlines():
        rank, worker, sample = map(int, line.split())
        reads[rank, worker].append(sample)
    for line in (folder / "steps").read_text().splitlines():
        rank, epoch, _, batch, worker = map(int, line.split()[:5])
        batches[rank, epoch].append((batch, worker))
    return Run(json.loads(done.stdout)["au"], reads, batches)


def order_problem(case, real, virtual):
    """What differs in who read what and what was delivered when, or None."""
    if not case.whole:
        for at in sorted(set(real.reads) | set(virtual.reads)):
            a, b = real.reads.get(at, []), virtual.reads.get(at, [])
            n = min(len(a), len(b))
            if a[:n] != b[:n] or abs(len(a) - len(b)) > MORE_READ:
                return f"reader {at}: {a} and {b}"
    for at, delivered in virtual.batches.items():
        if not case.in_order:
            # as many batches are read beyond those delivered as may be there when the epoch ends
            if delivered != real.batches[at][:len(delivered)]:
                return f"rank {at}: {real.batches[at]} and {delivered}"
            continue
        if [b for b, _ in delivered] != list(range(len(delivered))):
            return f"rank {at} got {delivered}"
        who = collections.defaultdict(set)
        for b, w in real.batches.get(at, []):
            who[b].add(w)
        wrong = [(b, w) for b, w in delivered if who and w not in who[b]]
        if wrong:
            return f"rank {at}: {wrong} were read by {[who[b] for b, _ in wrong]}"
    return None


def compare(case, scratch):
    """(whether AU and the order agree, what came out). A run sleeps longer than it is told, and the more the busier the
    machine is: what its reads and computations really took is given to the model, too. A quiet machine needs no such
    help (--nominal)."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        folder = pathlib.Path(folder)
        nominal = run_virtual(case, folder)
        reported, trace = run_real(case, folder / "real")
        trace.write_times(folder / "times", case.whole)
        told = run_virtual(case, folder, folder / "times")
    real = trace.run()
    problem = order_problem(case, real, nominal if NOMINAL else told)
    off = reported - nominal.au if NOMINAL else real.au - told.au
    said = (f"{reported:.2f} % real, {nominal.au:.2f} % virtual; with the times that were taken {real.au:.2f} % and "
            f"{told.au:.2f} %" + (f"; {problem}" if problem else ""))
    near = -LATE_POINTS <= reported - nominal.au <= EARLY_POINTS
    late = POINTS if case.ranks <= FEW_RANKS or NOMINAL else MANY_LATE_POINTS
    return problem is None and -late <= off <= POINTS and near, said


def main():
    if SANITIZED:
        skip("what takes a processor's time takes longer under a sanitizer")
    words = [a for a in sys.argv[1:] if a != "--nominal"]
    chosen = [c for c in CASES if not words or any(word in c.name for word in words)]
    wrong = []
    with tempfile.TemporaryDirectory() as scratch:
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            first = list(pool.map(lambda c: compare(c, scratch), chosen))
        for case, outcome in zip(chosen, first):
            right, said = attempts(case.name, lambda _, c=case: compare(c, scratch), first=outcome)
            print(f"{'ok   ' if right else 'WRONG'} {case.name}: {said}", flush=True)
            wrong += [case.name] * (not right)
    assert not wrong, wrong
    print(f"{len(chosen)} configurations agree")


main()
