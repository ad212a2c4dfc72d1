"""stoker capacity against 30 stores whose capacity is known: limits of bandwidth, requests, opens and a queue, alone and
together, with checkpoints and evaluation, stalls, speeds that drop, stores that serve several readers better than one,
and caches. The truth is a simulation of ranks, workers and the store's law, which knows nothing of the program. Printed
for each: what the search said, its time beside a run of 500 steps at the knee, and its data beside what its steps read;
CAUSE where what limits is not what the law says.

    python3 tests/bench/capacity_truths.py BINARY [CASE ...] [--jobs N] [--list] [--keep FOLDER]    without CASE all"""
import argparse
import concurrent.futures
import heapq
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from loop_device import Unavailable  # noqa: E402
from slow_fs import SlowFs  # noqa: E402

COMPUTE, TARGET, RECORD, HEADER = 0.05, 0.9, 10000, 128
SIZE = RECORD + HEADER
NEED = TARGET / COMPUTE  # samples/s of one accelerator at the target
BASE = {"train.computation_time": COMPUTE, "reader.batch_size": 1, "reader.access": "native", "dataset.format": "npy",
        "dataset.record_length_bytes": RECORD, "reader.read_threads": 1, "reader.prefetch_size": 2, "workflow.evaluation": "false"}


class Law:
    """What a store does with requests, in the order in which they come."""

    def __init__(self, bandwidth=0, latency=0, concurrency=0, iops=0, open_latency=0, open_concurrency=0, stream_bandwidth=0,
                 stall=0, stall_every=0, stall_at=0, alone=0, drawn=False):
        self.__dict__.update(locals())
        self.draws = random.Random(7)
        self.opens, self.slots = [0.0] * (open_concurrency or 4096), [0.0] * (concurrency or 4096)
        self.begun = self.moved = 0.0

    def running(self, t):
        """Seconds of `t` in which the store was not stalled."""
        if not self.stall:
            return t
        first = self.stall_at or self.stall_every
        whole, part = divmod(max(0.0, t - first), self.stall_every)
        return t - (t > first) * (whole * self.stall + min(part, self.stall))

    def clock(self, running):
        """When it had run for so long."""
        first = self.stall_at or self.stall_every
        if not self.stall or running < first:
            return running
        return running + self.stall * (1 + (running - first) // (self.stall_every - self.stall))

    def serve(self, t, size, ranks):
        now = self.running(t)
        if self.open_latency:
            now = max(now, heapq.heappop(self.opens)) + self.open_latency
            heapq.heappush(self.opens, now)
        if self.iops:
            now = self.begun = max(now, self.begun + 1 / self.iops)
        if self.alone and ranks == 1:
            now += self.alone
        latency = self.latency * (self.draws.expovariate(1) if self.drawn else 1)
        now = max(now, heapq.heappop(self.slots)) + latency + (size / self.stream_bandwidth if self.stream_bandwidth else 0)
        if self.bandwidth:
            now = self.moved = max(now, self.moved) + size / self.bandwidth
        heapq.heappush(self.slots, now)
        return self.clock(now)


def simulated(law, ranks, steps=1500, batch=1, threads=1, prefetch=2, save_every=0, save_s=0.0, save_seconds=0.0, size=SIZE):
    """AU of a long run: every rank has workers that read its batches in turn and `ahead` of it, and waits for the others
    after each step. Between steps a checkpoint stops all of it."""
    ahead = threads * prefetch
    done = [[0.0] * (steps + ahead) for _ in range(ranks)]
    took = [[0.0] * steps for _ in range(ranks)]
    left, events, waiting = [ranks] * steps, [], {}
    begin, at, last_save, saved, start = 0.0, 0, 0.0, 0.0, None
    for r in range(ranks):
        for k in range(ahead):
            if k < threads:
                heapq.heappush(events, (0.0, r, k, 0))
    while at < steps:
        t, r, k, part = heapq.heappop(events)
        end = law.serve(t, size, ranks)
        if part + 1 < batch:
            heapq.heappush(events, (end, r, k, part + 1))
            continue
        done[r][k] = end
        left[k] -= 1
        for kk in ([k + threads] if k + threads < steps else []):  # the worker's next, once the rank asked for it
            if kk < ahead or kk - ahead < at:
                heapq.heappush(events, (max(end, took[r][kk - ahead] if kk >= ahead else 0.0), r, kk, 0))
            else:
                waiting[r, kk] = end
        while at < steps and not left[at]:
            for q in range(ranks):
                took[q][at] = max(begin, done[q][at])
                kk = at + ahead
                if (q, kk) in waiting:
                    heapq.heappush(events, (max(waiting.pop((q, kk)), took[q][at]), q, kk, 0))
            begin = max(took[q][at] for q in range(ranks)) + COMPUTE
            at += 1
            if (save_every and at % save_every == 0) or (save_seconds and begin - last_save >= save_seconds):
                last_save = begin
                begin += save_s
                saved += save_s
            if at == steps // 5:
                start = begin
    return COMPUTE * (steps - steps // 5) / (begin - start)


def truth_of(of, most=40):
    """The largest number that meets the target; where one misses it, a few more are tried. AU of it, and of the next; NaN
    where the arithmetic is simpler than the simulation."""
    if of["truth"] is not None:
        return of["truth"], math.nan, math.nan

    def law():
        return Law(**of["law"])

    run = of["run"]
    au = {n: simulated(law(), n, **run) for n in range(1, 5)}
    n = max((n for n in au if au[n] >= TARGET), default=0)
    while n == len(au) and n < most:
        au[n + 1] = simulated(law(), n + 1, **run)
        n += au[n + 1] >= TARGET
    return n, au.get(n, au[1]), au.get(n + 1, 0)


def case(law=None, keys=None, run=None, real=None, fuse=None, data=0, truth=None, cause=None):
    law = law or {}
    return dict(law=law, keys=keys or {}, run=run or {}, real=real, fuse=fuse, data=data, truth=truth, cause=(cause or law_causes(law)).split())


def law_causes(law):
    """What limits by a law; one worker a rank is too few where each request takes long by itself."""
    if law.get("iops"):
        return "requests"
    if law.get("bandwidth"):
        return "bandwidth"
    return "queue" if law.get("concurrency") else "opens" if law.get("open_latency") else "latency stream_bandwidth workers"


LIMITED = {"checkpoint": "checkpoint bandwidth", "stalls": "stall unsteady bandwidth"}  # by what varies, or by the rate


def causes_of(name):
    return LIMITED.get(name.split()[0], " ".join(CASES[name]["cause"])).split() if name != "checkpoint none" else ["checkpoint"]


def rate(n, size=SIZE):
    return n * NEED * size


SAVES = {"workflow.checkpoint": "true"}
WRITES = {"storage.throttle.write": "true"}


def saves(size, **keys):
    return {**SAVES, **WRITES, "model.model_size_bytes": size, **{f"checkpoint.{k}": v for k, v in keys.items()}}


# `law`: of the store, for both; `keys`: of the workload; `run`: the same for the simulation; `real`: law of the throttle
# where it is another (it ends where `law` is); `fuse`: of the file system; `data`: files that are there before
CASES = {
    "bandwidth 3": case({"bandwidth": rate(3.5)}),
    "bandwidth 9": case({"bandwidth": rate(9.5)}),
    "bandwidth 20": case({"bandwidth": rate(20.5)}),
    # requests that begin together share the bandwidth and end together: 20 ms and n transfers in a step
    "bandwidth latency": case({"bandwidth": rate(6.9), "latency": 0.02}, cause="bandwidth latency workers", truth=math.floor((COMPUTE / TARGET - 0.02) * 6.9 * NEED)),
    "iops 5": case({"iops": 5.5 * NEED}),
    "iops slices": case({"iops": 10.5 * NEED}, real={"iops": 10.5 * NEED, "iops_slice": 0.1}),
    "queue 5": case({"latency": 0.03, "concurrency": 3}),
    "queue random": case({"latency": 0.015, "concurrency": 3, "drawn": True},
                         real={"latency": "{scale: 0.015, type: exponential}", "concurrency": 3}),
    "latency 0": case({"latency": 0.065}),
    "stream 0": case({"stream_bandwidth": SIZE / (COMPUTE * 1.25)}),
    "opens 5": case({"open_latency": 0.02, "open_concurrency": 2}),
    "opens bandwidth": case({"open_latency": 0.02, "open_concurrency": 3, "bandwidth": rate(7.4)}, cause="bandwidth opens"),
    "iops bandwidth": case({"iops": 6.4 * NEED, "bandwidth": rate(8)}),
    "iops queue": case({"iops": 6.5 * NEED, "latency": 0.02, "concurrency": 4}),
    "workers": case({"latency": 0.03, "concurrency": 12}, {"reader.batch_size": 4, "reader.read_threads": 4}, dict(batch=4, threads=4)),
    "evaluation": case({"bandwidth": rate(5.5)}, {"workflow.evaluation": "true", "evaluation.eval_time": 0.1}),
    # a checkpoint of 80 kB at the rate of the store
    "checkpoint steps": case({"bandwidth": rate(6.5)}, saves(100000, steps_between_checkpoints=80), dict(save_every=80, save_s=100000 / rate(6.5)),
                             data=3000),
    "checkpoint much": case({"bandwidth": rate(8.5)}, saves(400000, steps_between_checkpoints=100), dict(save_every=100, save_s=400000 / rate(8.5)),
                            data=3000),
    "checkpoint none": case({"bandwidth": rate(8.5)}, saves(1600000, steps_between_checkpoints=100),
                            dict(save_every=100, save_s=1600000 / rate(8.5)), data=3000),
    "checkpoint seconds": case({"bandwidth": rate(6.5)}, saves(240000, seconds_between_checkpoints=10),
                               dict(save_seconds=10, save_s=240000 / rate(6.5)), data=3000),
    "checkpoint eval": case({"bandwidth": rate(7.5)}, {**saves(160000, steps_between_checkpoints=100), "workflow.evaluation": "true",
                                                       "evaluation.eval_time": 0.1, "dataset.num_files_eval": 8},
                            dict(save_every=100, save_s=160000 / rate(7.5)), data=3000),
    "stalls 3 s": case({"bandwidth": rate(7.5), "stall": 0.25, "stall_every": 3}),
    "stalls 5 s": case({"bandwidth": rate(9), "stall": 0.4, "stall_every": 5}),
    "stalls 8 s": case({"bandwidth": rate(8), "stall": 0.7, "stall_every": 8, "stall_at": 6}),
    "credit": case({"bandwidth": rate(3.5)}, real={"bandwidth": rate(3.5), "burst_bytes": 12 * rate(3.5), "burst_bandwidth": rate(12)}),
    "half life": case({"bandwidth": rate(4.5)}, real={"bandwidth": rate(12), "bandwidth_half_life": 4, "bandwidth_floor": rate(4.5)}),
    "gathers 5": case({"bandwidth": rate(5.5), "alone": 0.08}, fuse={"bytes_s": rate(5.5), "alone_us": 80000}),
    "gathers 3": case({"bandwidth": rate(3.5), "alone": 0.08}, fuse={"bytes_s": rate(3.5), "alone_us": 80000}),
    "cache own": case({"bandwidth": rate(3.5)}, fuse={"bytes_s": rate(3.5), "cache": 1}),
    "cache given": case({"bandwidth": rate(3.5)}, fuse={"bytes_s": rate(3.5), "cache": 1}, data=1500),
}


def throttle(law, store):
    return {"storage.store": f"throttle+{store}", **{f"storage.throttle.{k}": v for k, v in law.items()}}


def texts(keys):
    return [f"{k}={v}" for k, v in keys.items()]


def call(*argv):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (argv, done.stdout, done.stderr)
    return done


def data_share(out, found):
    """The files of the search beside the samples that the steps of one run read, at most."""
    shares = []
    for run in found["runs"]:
        keys = json.loads((out / run["folder"] / "result.json").read_text())["configuration"]
        files, batch, epochs = (keys[k]["value"] for k in ("dataset.num_files_train", "reader.batch_size", "train.epochs"))
        shares.append((files, run["steps"] * run["accelerators"] * batch / epochs))
    return max(f for f, _ in shares) / max(s for _, s in shares)


def search(binary, name, tmp):
    c = CASES[name]
    keys = {**BASE, **c["keys"]}
    own = {"dataset.data_folder": tmp / "data", "checkpoint.checkpoint_folder": tmp / "checkpoints"}
    if c["data"]:
        own.update({"dataset.num_files_train": c["data"]})
    store = {"storage.store": "posix"} if c["fuse"] else throttle(c["real"] or c["law"], "posix" if c["data"] else "memory")
    (tmp / "below").mkdir()

    def go(folder):
        if folder:
            own["dataset.data_folder"] = f"{folder}/data"
        if c["data"]:
            call(binary, "generate", "default", *texts({**keys, **own, "dataset.num_files_eval": 8}), "-q")
        begin = time.monotonic()
        call(binary, "capacity", "default", *texts({**keys, **own, **store}), "-q", "--max", "40", "-o", tmp / "out")
        return time.monotonic() - begin

    if not c["fuse"]:
        return go(None)
    with SlowFs(tmp / "below", direct=1, **c["fuse"]) as mount:
        return go(mount)


def one(binary, name, keep):
    c = CASES[name]
    truth, au, above = truth_of(c)
    tmp = pathlib.Path(tempfile.mkdtemp(dir=keep, prefix=name.replace(" ", "_") + "."))
    try:
        took = search(binary, name, tmp)
        found = json.loads((tmp / "out/capacity.json").read_text())
        share = data_share(tmp / "out", found)
    finally:
        if not keep:
            shutil.rmtree(tmp)
    full = 500 * COMPUTE / (au if truth and au > 0 else TARGET) + 1
    high = math.inf if found["high_95"] is None else found["high_95"]
    ok = dict(near=abs(found["accelerators"] - truth) <= 1 and not (found["at_least"] and found["accelerators"] < truth),
              held=found["low_95"] <= truth <= high, time=took <= 3 * full, data=bool(c["data"]) or share <= 1.2, cause=found["cause"] in causes_of(name))
    print(f"{name:18} true {truth:2} ({100 * au:.1f} %, next {100 * above:.1f} %)  {found['answer']}, {found['cause']}; {len(found['runs'])} runs, "
          f"{took:.0f} s = {took / full:.1f} runs; data x {share:.2f}  {' '.join(k.upper() for k, v in ok.items() if not v) or 'ok'}", flush=True)
    return ok


def main():
    args = argparse.ArgumentParser()
    args.add_argument("binary")
    args.add_argument("case", nargs="*")
    args.add_argument("--jobs", type=int, default=2)
    args.add_argument("--list", action="store_true", help="print the truths alone")
    args.add_argument("--keep", help="folder in which results stay")
    args = args.parse_intermixed_args()
    names = args.case or list(CASES)
    if args.list:
        for name in names:
            print(f"{name:18} true %d (AU {'%.3f'}, next {'%.3f'})" % truth_of(CASES[name]))
        return 0
    results = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, job in [(name, pool.submit(one, os.path.abspath(args.binary), name, args.keep)) for name in names]:
            try:
                results.append(job.result())
            except Unavailable as e:
                print(f"{name:18} left out: {e}")
            except (AssertionError, KeyError) as e:
                print(f"{name:18} FAILED: {e}")
                results.append(dict(near=False, held=False, time=False, data=False, cause=False))
    print(f"of {len(results)}: within 1 {sum(r['near'] for r in results)}, interval held {sum(r['held'] for r in results)}, both "
          f"{sum(r['near'] and r['held'] for r in results)}; at most 3 runs {sum(r['time'] for r in results)}, data {sum(r['data'] for r in results)}, "
          f"cause {sum(r['cause'] for r in results)}")
    return 0 if all(r["near"] and r["held"] for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
