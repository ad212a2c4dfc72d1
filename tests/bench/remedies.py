"""Remedies applied: what a run says would change its result against a second run with that change, over the whole run's
AU. Stores of known law (independent latency, streams, shared bandwidth, one queue, several servers, requests per
second, opens one at a time, burst credit, computation, decoding, processors; a block device held by a control group and
a FUSE file system of one thread where they can be had) under 1 to 4 ranks and every loader.

Each change of `what_if` is made (a key, more ranks, another throttle), and so are the promises of the sentence: so many
workers would reach so much, more workers would not reach 90 %. A prediction without a figure counts as "cannot say";
then the run is made again with run.probe=true, which should be able to.

Prints every remedy with what was said and measured, and the totals. What is outside of its interval is measured three
times, base and change, and the middle counts. By hand; half an hour.
Usage: remedies.py [-j JOBS] [-o ROWS.jsonl] [parts of bases' names, between bars [part of a change]]"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import re
import shlex
import statistics
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import result_facts  # noqa: E402
from loop_device import LoopDevice, Unavailable, join  # noqa: E402
from slow_fs import SlowFs  # noqa: E402
from util import left_out, load, stoker, tiny  # noqa: E402

NARROW = 5.0  # points: intervals for which the error of the figure is counted
DISTURBED_TRIES = 4
BROKEN = 3.0  # points beyond what was promised
FASTER = {"storage.throttle.latency": 0.5, "storage.throttle.open_latency": 0.5, "storage.throttle.bandwidth": 2,
          "storage.throttle.stream_bandwidth": 2, "storage.throttle.iops": 2, "storage.throttle.burst_bandwidth": 2}
STORAGE = {"change.latency": ("latency", ),
           "change.bandwidth": ("bandwidth", "stream_bandwidth", "burst_bandwidth"),
           "change.storage": ("all", )}
UNTOLD = {"effect.workers_untold", "limit.storage_size", "limit.storage_queue", "limit.metadata_untold"}

PYTORCH = dict(reader__data_loader="pytorch")
DALI = dict(reader__data_loader="dali")
TENSORFLOW = dict(framework="tensorflow", reader__data_loader="tensorflow")
TFRECORD = dict(TENSORFLOW, fmt="tfrecord", dataset__num_samples_per_file=4)
HDF5 = dict(fmt="hdf5", reader__access="framework", files=80)
NATIVE_DALI = dict(reader__data_loader="native_dali", reader__dont_use_mmap="true")


class Base:
    """A planted situation: its class, ranks, and keys (a__b=c). `files`, `fmt` and `rig` are not keys."""

    def __init__(self, kind, name, ranks=1, rig=None, quick=False, **keys):
        self.kind, self.ranks, self.rig, self.quick = kind, ranks, rig, quick
        self.wanted = None  # a function of a change, where not all are made
        self.name = f"{kind}: {name}, {ranks} rank{'s' if ranks > 1 else ''}"
        common = dict(fmt="npy", files=160, dataset__record_length_bytes=65536, reader__access="native",
                      reader__prefetch_size=4, reader__read_threads=2, reader__batch_size=2,
                      train__computation_time=0.02)
        if rig is None:
            common["storage__store"] = "throttle+memory"
        self.keys = common | keys


def throttle(**keys):
    return {"storage__throttle__" + k: v for k, v in keys.items()}


def bases():
    t = throttle
    # ---- readers that do not affect each other
    yield Base("latency", "9 ms", 1, quick=True, train__computation_time=0.006, **t(latency=0.009))
    yield Base("latency", "7 ms, 3 workers", 2, reader__read_threads=3, reader__prefetch_size=6,
               train__computation_time=0.004, **t(latency=0.007))
    yield Base("latency", "npz, 2 ms a request", 3, fmt="npz", reader__access="framework", train__computation_time=0.02,
               **t(latency=0.002))
    yield Base("latency", "tf.data records, 6 ms", 2, **TFRECORD, reader__batch_size=4, files=80, train__computation_time=0.003,
               **t(latency=0.006))
    yield Base("latency", "tf.data generators, 12 ms", 1, **TENSORFLOW, train__computation_time=0.006,
               **t(latency=0.012))
    yield Base("latency", "dali, 10 ms", 2, **DALI, reader__batch_size=4, train__computation_time=0.006,
               **t(latency=0.01))
    yield Base("latency", "native dali, 8 ms", 1, **NATIVE_DALI, train__computation_time=0.006, **t(latency=0.008))
    yield Base("latency", "exponential, 10 ms", 2, files=300,
               train__computation_time=0.007, **t(latency="{type: exponential, scale: 0.01}"))
    yield Base("latency", "hdf5 of 4 samples, 3 ms a request", 1, quick=True, **HDF5, dataset__num_samples_per_file=4,
               dataset__record_length_bytes=90000, train__computation_time=0.012, **t(latency=0.003))
    yield Base("latency", "hdf5 in gzip, 3 ms a request", 2, **HDF5, dataset__compression="gzip",
               train__computation_time=0.012, **t(latency=0.003))
    yield Base("latency", "npz of 5 MB, 2 ms a request", 1, fmt="npz", reader__access="framework", files=60,
               dataset__record_length_bytes=5000000, train__computation_time=0.016, **t(latency=0.002))
    yield Base("stream", "5 MB/s each", 1, quick=True, train__computation_time=0.009, **t(stream_bandwidth=5e6))
    yield Base("stream", "8 MB/s each, 4 workers", 3, reader__read_threads=4, reader__prefetch_size=8,
               dataset__record_length_bytes=262144, train__computation_time=0.011, **t(stream_bandwidth=8e6))
    yield Base("stream", "dali, 6 MB/s each", 2, **DALI, reader__batch_size=4, train__computation_time=0.014,
               **t(stream_bandwidth=6e6))
    # ---- one bandwidth
    yield Base("bandwidth", "12 MB/s", 2, train__computation_time=0.014, **t(bandwidth=12e6))
    yield Base("bandwidth", "20 MB/s, 4 ranks", 4, quick=True, reader__read_threads=1, reader__prefetch_size=2,
               **t(bandwidth=20e6))
    yield Base("bandwidth", "9 MB/s, streams of 4", 1, reader__read_threads=4, reader__prefetch_size=8,
               train__computation_time=0.011, **t(bandwidth=9e6, stream_bandwidth=4e6))
    yield Base("bandwidth", "tf.data records, 10 MB/s", 2, **TFRECORD, files=80, **t(bandwidth=10e6))
    yield Base("bandwidth", "sizes vary, 8 MB/s", 1, dataset__record_length_bytes_stdev=20000, reader__read_threads=3,
               reader__prefetch_size=6, train__computation_time=0.012, **t(bandwidth=8e6))
    yield Base("bandwidth", "native dali, 11 MB/s", 2, **NATIVE_DALI, **t(bandwidth=11e6))
    # ---- queues
    yield Base("queue", "one of 30 MB/s", 1, quick=True, dataset__record_length_bytes=524288, reader__read_threads=3,
               reader__prefetch_size=6, **t(stream_bandwidth=30e6, concurrency=1))
    yield Base("queue", "one of 6 ms", 2, reader__read_threads=1, reader__prefetch_size=2, **t(latency=0.006,
                                                                                              concurrency=1))
    yield Base("queue", "one of 9 ms, one worker", 1, reader__read_threads=1, reader__prefetch_size=2,
               train__computation_time=0.01, **t(latency=0.009, concurrency=1))
    yield Base("queue", "one of 4 ms, dali", 2, **DALI, reader__batch_size=4, **t(latency=0.004, concurrency=1))
    yield Base("queue", "one of 5 ms, tf.data", 1, **TFRECORD, reader__batch_size=4, files=80,
               train__computation_time=0.014, **t(latency=0.005, concurrency=1))
    yield Base("queue", "one, 4 ranks of one worker", 4, reader__read_threads=1, reader__prefetch_size=2,
               train__computation_time=0.025, **t(latency=0.004, concurrency=1))
    yield Base("servers", "3 of 14 ms", 1, quick=True, reader__read_threads=4, reader__prefetch_size=8,
               train__computation_time=0.007, **t(latency=0.014, concurrency=3))
    yield Base("servers", "2 of 10 ms", 2, train__computation_time=0.014, **t(latency=0.01, concurrency=2))
    yield Base("servers", "4 of 20 ms, few readers", 1, train__computation_time=0.012, **t(latency=0.02,
                                                                                         concurrency=4))
    yield Base("servers", "2 of 12 MB/s", 3, reader__read_threads=1, reader__prefetch_size=2,
               dataset__record_length_bytes=131072, train__computation_time=0.03,
               **t(stream_bandwidth=12e6, concurrency=2))
    # ---- requests and opens
    yield Base("iops", "150 a second", 2, quick=True, **t(iops=150))
    yield Base("iops", "90 a second, one worker", 1, reader__read_threads=1, reader__prefetch_size=2, **t(iops=90))
    yield Base("iops", "200 a second in slices of 0.1 s", 2, files=250, train__computation_time=0.014,
               **t(iops=200, iops_slice=0.1))
    yield Base("iops", "npz, 700 a second", 1, fmt="npz", reader__access="framework", **t(iops=700, latency=0.0005))
    yield Base("iops", "dali, 160 a second, 2 ms", 2, **DALI, **t(iops=160, latency=0.002))
    yield Base("opens", "one at a time, 5 ms", 2, quick=True, train__computation_time=0.013,
               **t(open_latency=0.005, open_concurrency=1))
    yield Base("opens", "one at a time, 8 ms", 1, train__computation_time=0.01,
               **t(open_latency=0.008, open_concurrency=1))
    yield Base("opens", "independent, 15 ms", 2, train__computation_time=0.01, **t(open_latency=0.015))
    yield Base("opens", "two at a time, 12 ms", 3, reader__read_threads=1, reader__prefetch_size=2,
               train__computation_time=0.02, **t(open_latency=0.012, open_concurrency=2))
    yield Base("opens", "dali, one at a time, 4 ms", 2, **DALI, train__computation_time=0.011,
               **t(open_latency=0.004, open_concurrency=1))
    # ---- unsteady
    yield Base("burst", "40 MB/s for 8 MB, then 5", 1, files=300, **t(bandwidth=5e6, burst_bandwidth=40e6,
                                                                     burst_bytes=8e6))
    yield Base("burst", "60 MB/s for 6 MB, then 9", 2, files=200, **t(bandwidth=9e6, burst_bandwidth=60e6,
                                                                     burst_bytes=6e6))
    # ---- not the store
    yield Base("compute", "0.5 ms", 2, quick=True, **t(latency=0.0005))
    yield Base("compute", "3 ms hidden", 1, reader__read_threads=3, reader__prefetch_size=6, **t(latency=0.003))
    yield Base("decode", "preprocessing of 14 ms", 1, quick=True, reader__preprocess_time=0.014, train__computation_time=0.01,
               **t(latency=0.0005))
    yield Base("decode", "preprocessing of 9 ms", 2, reader__preprocess_time=0.009, train__computation_time=0.007,
               **t(latency=0.001))
    yield Base("decode", "dali, preprocessing of 12 ms", 1, **DALI, reader__batch_size=4,
               reader__preprocess_time=0.012, **t(latency=0.001))
    yield Base("cpu", "jpeg, one worker", 1, fmt="jpeg", files=100, reader__access="framework", reader__read_threads=1,
               dataset__record_length_bytes=1500000, reader__prefetch_size=2, train__computation_time=0.014,
               **t(latency=0.0001))
    yield Base("cpu", "jpeg, 4 workers on 2 processors", 2, fmt="jpeg", files=60, reader__access="framework",
               reader__read_threads=4, reader__prefetch_size=8, dataset__record_length_bytes=1500000,
               train__computation_time=0.02, **t(latency=0.0001))
    # ---- real kernels
    yield Base("disk", "blkio, 12 MB/s", 2, rig=dict(read_bps_device=12e6), reader__odirect="true",
               train__computation_time=0.014)
    yield Base("disk", "blkio, 70 requests a second", 1, rig=dict(read_iops_device=70), reader__odirect="true",
               train__computation_time=0.02)
    yield Base("fuse", "one request at a time, 6 ms", 2, rig=dict(fuse=dict(read_us=6000, turns=1, direct=1)),
               train__computation_time=0.017)
    yield Base("fuse", "8 ms a read", 1, rig=dict(fuse=dict(read_us=8000, direct=1)), train__computation_time=0.006)
    yield Base("fuse", "15 MB/s", 1, rig=dict(fuse=dict(bytes_s=15e6, direct=1)), train__computation_time=0.006)
    # ---- stores that the model of reads cannot express
    yield from odd_bases()


def odd(name, ranks=1, store=None, **keys):
    return Base("odd", name, ranks, rig=dict(fuse=dict(direct=1) | store), **keys)


def odd_bases():
    four = dict(reader__read_threads=4, reader__prefetch_size=8)
    npz = dict(fmt="npz", reader__access="framework", files=120)
    yield odd("newest first, one of 6 ms", 1, dict(read_us=6000, newest=1), **four, train__computation_time=0.016)
    yield odd("newest first, one of 4 ms", 2, dict(read_us=4000, newest=1), train__computation_time=0.02)
    yield odd("2 ms, 3 more for each other", 1, dict(read_us=2000, crowd_us=3000), **four, train__computation_time=0.009)
    yield odd("4 ms, 8 more for each other", 2, dict(read_us=4000, crowd_us=8000), train__computation_time=0.02)
    yield odd("1 ms, 6 more for each other", 1, dict(read_us=1000, crowd_us=6000), reader__read_threads=2,
              train__computation_time=0.008)
    yield odd("opens one at a time, 5 ms", 2, dict(open_us=5000, open_turns=1), train__computation_time=0.013)
    yield odd("one file in 5 takes 40 ms", 1, dict(read_us=2000, nth_file=5, nth_us=40000), **four,
              train__computation_time=0.012)
    yield odd("one file in 12 takes 60 ms", 2, dict(read_us=2000, nth_file=12, nth_us=60000), train__computation_time=0.012)
    yield odd("one thread in 4 takes 30 ms", 1, dict(read_us=2000, nth_thread=4, nth_us=30000), **four,
              train__computation_time=0.01)
    yield odd("one thread in 3 takes 40 ms", 2, dict(read_us=2000, nth_thread=3, nth_us=40000), reader__read_threads=3,
              reader__prefetch_size=6, train__computation_time=0.016)
    yield odd("one read in 30 takes 150 ms", 1, dict(read_us=3000, nth_read=30, nth_us=150000), **four,
              train__computation_time=0.01)
    yield odd("one read in 8 takes 40 ms", 2, dict(read_us=1000, nth_read=8, nth_us=40000), train__computation_time=0.012)
    yield odd("npz, the first read takes 15 ms", 1, dict(read_us=200, first_us=15000), **npz, quick=True,
              train__computation_time=0.014)
    yield odd("npz, closes of 15 ms", 1, dict(read_us=200, close_us=15000), **npz, quick=True, train__computation_time=0.014)
    yield odd("npz, large reads take 15 ms", 1, dict(read_us=200, large_us=15000), **npz, train__computation_time=0.014)
    yield odd("stats of 10 ms", 1, dict(read_us=500, stat_us=10000), train__computation_time=0.008)
    yield odd("every other 0.3 s takes 12 ms more", 1, dict(read_us=3000, turn_s=0.3, nth_us=12000), files=300,
              train__computation_time=0.01)


# ---- running ----

class Rig:
    """Where a base's data lies: nowhere for stores in memory; for disks a loop device, whose limits a control group sets;
    or a folder behind a slow file system in user space."""

    def __init__(self, base):
        self.base, self.folder, self.enter = base, "/remedies", None

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        self.generate_in = self.folder
        if self.base.rig and "fuse" in self.base.rig:
            source = self.stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm"))
            mount = self.stack.enter_context(SlowFs(source, **self.base.rig["fuse"]))
            self.generate_in, self.folder = f"{source}/data", f"{mount}/data"
        elif self.base.rig is not None:
            d = self.stack.enter_context(LoopDevice(400))
            limits = {f"blkio__throttle__{k}": f"{d.number()} {int(v)}" for k, v in self.base.rig.items()}
            group = d.group("blkio", **limits)
            if not group:
                self.stack.close()
                raise Unavailable("there is no blkio control group")
            self.generate_in = self.folder = f"{d.mount}/data"
            self.enter = join([group])
        return self

    def __exit__(self, *_):
        self.stack.close()
        return False


class Runner:
    """Runs of one base."""

    def __init__(self, base, rig, tmp):
        self.base, self.rig, self.tmp, self.count, self.generated = base, rig, tmp, 0, 0
        self.commands = {}

    def run(self, change="", probe=False):
        base, keys, more, ranks = self.base, dict(self.base.keys), [], self.base.ranks
        if change == "change.ranks":
            ranks *= 2
        elif change in STORAGE:
            keys = faster(keys, STORAGE[change])
        else:
            more = change.split()
        if probe:
            more = [*more, "run.probe=true", "run.probe_time=3"]
        fmt, files = keys.pop("fmt"), keys.pop("files") * ranks
        self.count += 1
        out = os.path.join(self.tmp, f"{self.count}")
        if base.rig is not None and files > self.generated:
            stoker("generate", *tiny(self.rig.generate_in, None, fmt, files, **keys))
            self.generated = files
        if base.rig is not None:
            keys["workflow__generate_data"] = "false"
        args = [*tiny(self.rig.folder, out, fmt, files, **keys), *more, "-n", str(ranks)]
        self.commands[change or "base"] = "stoker run " + shlex.join(
            a for i, a in enumerate(args) if a not in ("-q", "-o") and (i == 0 or args[i - 1] != "-o"))
        for _ in range(1 if base.kind == "cpu" else DISTURBED_TRIES):
            stoker("run", *args, preexec_fn=self.rig.enter)
            result = load(out)
            # what changes under way by other programs' work is not predicted
            if not disturbed(result, base.keys["train__computation_time"]) and (change or steady(base, result)):
                break
        return result

    def measure(self, change):
        return self.run(change)["training"]["whole_run_au_percent"]


def disturbed(result, compute_s):
    """Whether other programs took the processors: computation took longer than it should, or ranks and workers waited
    for a processor."""
    t = result["training"]
    late = t.get("compute_overshoot_mean_s") or 0
    waited = t["decomposition"]["mean_over_ranks_percent"].get("no_processor", 0)
    return late > 0.0002 + 0.02 * compute_s or waited > 1


def steady(base, result):
    modeled = base.kind != "burst" and base.keys.get("fmt") != "tfrecord" and "native_dali" not in str(base.keys)
    return not modeled or result.get("what_if", {}).get("known")


def faster(keys, what):
    keys = dict(keys)
    for k, by in FASTER.items():
        k = k.replace(".", "__")
        word = k.split("__")[-1]
        # of requests alone, where no more is said
        if k not in keys or not (word in what or "all" in what):
            continue
        number = re.search(r"scale: ([0-9.e+-]+)", str(keys[k]))
        if number:
            keys[k] = keys[k].replace(number.group(1), str(float(number.group(1)) * by))
        else:
            keys[k] = keys[k] * by
    return keys


# ---- what is said, and what became of it ----

def promises(base, result):
    """(change, figure or None, low, high) of what_if and of the sentence."""
    found = {}
    for c in result.get("what_if", {}).get("changes", []):
        if can_apply(base, result_facts.change_of(c)):
            found[result_facts.change_of(c)] = (c.get("whole_au_percent"), c.get("low_percent", 0.0), c.get("high_percent", 100.0))
    said = result_facts.all_of(result)
    scale = result["configuration"]
    threads = scale["reader.read_threads"]["value"] or 1
    window = scale["reader.prefetch_size"]["value"]
    m = result_facts.find(said, "effect.workers", "effect.workers_below", "effect.workers_enough")
    if m:
        found["sentence: " + workers(base, int(m["workers"]), threads, window)] = (m["au"], m["low"], m["high"])
    m = result_facts.find(said, "effect.window")
    if m:
        found[f"sentence: reader.prefetch_size={m['window']:.0f}"] = (m["au"], m["low"], m["high"])
    if result_facts.find(said, "effect.workers_never"):
        found["sentence: " + workers(base, min(4 * threads, 32), threads, window)] = (None, 0, 90)
    return found


def is_untold(result):
    return bool(UNTOLD & result_facts.reasons(result_facts.all_of(result)))


def workers(base, n, threads, window):
    each = max(1, window // max(1, threads))
    pytorch = base.keys.get("reader__data_loader", "pytorch") == "pytorch"
    return f"reader.read_threads={n}" + (f" reader.prefetch_size={each * n}" if pytorch else "")


def can_apply(base, change):
    if change in STORAGE:
        return base.rig is None and faster(base.keys, STORAGE[change]) != base.keys
    if base.rig is not None and "dataset." in change:
        return False  # the files are there already
    return change == "change.ranks" or all("=" in part for part in change.split())


def judge(said, real):
    """inside, outside, or untold; the error of the figure; points beyond the interval."""
    figure, low, high = said
    beyond = max(low - real, real - high, 0)
    return beyond <= 0.05 + 1e-9, beyond


def try_base(base, wanted, tmp, lock):
    rows = []
    try:
        with Rig(base) as rig:
            runner = Runner(base, rig, tmp)
            rows = of_base(runner, wanted)
    except Unavailable as e:
        left_out(f"{base.name}: {e}")
    with lock:
        for row in rows:
            show(row)
    return rows


def of_base(runner, wanted):
    base, rows = runner.base, []
    first = runner.run()
    said = {c: s for c, s in promises(base, first).items() if wanted(c)}
    text = first.get("limit", {}).get("text", "")
    reasons = sorted(result_facts.reasons(result_facts.all_of(first)))
    real = {}
    untold = [c for c, s in said.items() if s[0] is None and not c.startswith("sentence")]
    asked = {"run": said}
    doubted = is_untold(first)
    if untold or doubted:
        probed = runner.run(probe=True)
        now = promises(base, probed)
        asked["probe"] = {c: now.get(c, (None, 0.0, 100.0)) for c in untold}
        asked["probe"] |= {c: s for c, s in now.items() if c.startswith("sentence") and wanted(c)}
        rows.append(dict(kind=base.kind, base=base.name, how="cause", untold=doubted, text=text,
                         after=probed.get("limit", {}).get("text", ""), after_untold=is_untold(probed), probe=probed.get("probe")))
    for how, these in asked.items():
        for change, s in these.items():
            apply = change.removeprefix("sentence: ")
            if apply not in real:
                real[apply] = runner.measure(apply)
            inside, beyond = judge(s, real[apply])
            tries = 1
            if not inside:
                s, real[apply], tries = again(runner, how, change, s, real[apply])
                inside, beyond = judge(s, real[apply])
            rows.append(dict(kind=base.kind, base=base.name, how=how, change=change, said=s[0], low=s[1], high=s[2],
                             real=real[apply], inside=inside, beyond=beyond, tries=tries, was_untold=change in untold,
                             base_au=first["training"]["whole_run_au_percent"], reasons=reasons, text=text if how == "run" else
                             probed["limit"]["text"], command=runner.commands.get(apply) or "",
                             base_command=runner.commands["base"]))
    return rows


def again(runner, how, change, said, real):
    """The middle of three pairs, by how far the measured value lies beyond what was said."""
    pairs = [(said, real)]
    for _ in range(2):
        s = promises(runner.base, runner.run(probe=how == "probe")).get(change)
        r = runner.measure(change.removeprefix("sentence: "))
        pairs.append((s or said, r))
    pairs.sort(key=lambda p: judge(*p)[1])
    return (*pairs[1], 3)


def show(r):
    if r["how"] == "cause":
        if r["untold"]:
            print(f"{r['base']:46} cause: {r['text']}\n{'':46} after a probe: {r['after']}", flush=True)
        return
    figure = "-" if r["said"] is None else f"{r['said']:.1f}"
    mark = "" if r["inside"] else f"  OUTSIDE by {r['beyond']:.1f}"
    print(f"{r['base']:46} {r['how']:5} {r['change']:58} {r['base_au']:6.1f} {figure:>6} {r['low']:6.1f} "
          f"{r['high']:6.1f} {r['real']:6.1f}{mark}{'' if r['tries'] == 1 else '  (middle of 3)'}", flush=True)


def totals(rows):
    """What `Done when` asks, by the rows: a dict of figures."""
    run = [r for r in rows if r["how"] == "run"]
    stated = [r for r in run if r["said"] is not None or r["change"].startswith("sentence")]
    narrow = [abs(r["said"] - r["real"]) for r in stated if r["said"] is not None and r["high"] - r["low"] <= NARROW]
    untold = [r for r in run if r["said"] is None and not r["change"].startswith("sentence")]
    after = [r for r in rows if r["how"] == "probe" and r["was_untold"]]
    told_now = [r for r in after if r["said"] is not None]
    causes = [r for r in rows if r["how"] == "cause" and r["untold"]]
    return dict(applied=len(run), stated=len(stated), inside=sum(r["inside"] for r in stated),
                narrow=len(narrow), narrow_median=statistics.median(narrow) if narrow else 0.0,
                broken=sum(r["beyond"] > BROKEN for r in stated), untold=len(untold),
                untold_inside=sum(r["inside"] for r in untold), probed=len(after), probe_tells=len(told_now),
                probe_right=sum(r["inside"] for r in told_now), causes=len(causes),
                causes_told=sum(not r["after_untold"] for r in causes))


def summary(rows):
    t = totals(rows)
    share = 100 * t["inside"] / t["stated"] if t["stated"] else 100
    print(f"{t['applied']} remedies applied, {t['stated']} with a figure or a promise: {t['inside']} inside the stated "
          f"interval ({share:.1f} %), {t['broken']} beyond it by more than {BROKEN:.0f} points; median error "
          f"{t['narrow_median']:.2f} points of {t['narrow']} with an interval of {NARROW:.0f} points or less; "
          f"{t['untold']} could not be told (of these {t['untold_inside']} inside the stated range), after a probe "
          f"{t['probe_tells']} of {t['probed']} could, {t['probe_right']} rightly; a cause could not be told {t['causes']} "
          f"times, after a probe {t['causes_told']} of them")
    return t


def carry_out(chosen, wanted=lambda change: True, jobs=2, out=None):
    rows, lock = [], threading.Lock()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as tmp:
        def one(i_base):
            folder = os.path.join(tmp, str(i_base[0]))
            os.mkdir(folder)
            return try_base(i_base[1], i_base[1].wanted or wanted, folder, lock)

        # processors are shared, so what is limited by them, and real devices, go one at a time
        alone = [b for b in enumerate(chosen) if b[1].kind in ("cpu", "disk", "fuse")]
        beside = [b for b in enumerate(chosen) if b not in alone]
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for got in pool.map(one, beside):
                rows += got
        for b in alone:
            rows += one(b)
    if out:
        with open(out, "a") as f:
            for r in rows:
                f.write(json.dumps(r) + "\n")
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-j", type=int, default=2)
    p.add_argument("-o")
    p.add_argument("--sum", action="store_true", help="only the totals of the rows in -o")
    p.add_argument("names", nargs="?", default="")
    p.add_argument("change", nargs="?", default="")
    a = p.parse_args()
    if a.sum:
        with open(a.o) as f:
            rows = [json.loads(line) for line in f]
        for kind in dict.fromkeys(r["kind"] for r in rows):
            print(f"{kind}: ", end="")
            summary([r for r in rows if r["kind"] == kind])
    else:
        chosen = [b for b in bases() if any(n in b.name for n in a.names.split("|"))]
        print(f"{'base':46} {'how':5} {'change':58} {'base':>6} {'said':>6} {'low':>6} {'high':>6} {'real':>6}")
        rows = carry_out(chosen, lambda c: a.change in c, a.j, a.o)
    summary(rows)


if __name__ == "__main__":
    main()
