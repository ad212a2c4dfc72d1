"""Planted causes are named: each run is made slow by one thing, and the sentence on what limits it must
name that. A run that misses is repeated, alone, and must be right in 3 of 4 attempts: this machine has other work."""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from told import told  # noqa: E402
from util import SANITIZED, attempts, load, skip, stoker, tiny  # noqa: E402

THROTTLED = dict(storage__store="throttle+memory", dataset__data_folder="/causes", fmt="npy",
                 dataset__record_length_bytes=65536, train__computation_time=0.01)


def cases(folder):
    """(name, cause, ranks, keys)"""
    t = THROTTLED
    yield "bandwidth", "bandwidth", 1, dict(t, files=80, reader__read_threads=4,
                                            reader__prefetch_size=8, storage__throttle__bandwidth=4e6)
    yield "bandwidth of all ranks", "bandwidth", 2, dict(t, files=80, reader__read_threads=2,
                                                         reader__prefetch_size=4,
                                                         storage__throttle__bandwidth=4e6)
    yield "bandwidth of a stream", "stream_bandwidth", 1, dict(
        t, files=160, reader__read_threads=3, reader__prefetch_size=6,
        dataset__record_length_bytes_stdev=30000, storage__throttle__stream_bandwidth=8e5)
    yield "latency", "latency", 1, dict(t, files=100, reader__read_threads=2, reader__prefetch_size=4,
                                        storage__throttle__latency=0.012)
    yield "latency of all ranks", "latency", 2, dict(t, files=100, reader__read_threads=2,
                                                     reader__prefetch_size=4,
                                                     storage__throttle__latency=0.012)
    yield "opening", "metadata", 1, dict(t, files=100, reader__read_threads=2, reader__prefetch_size=4,
                                         storage__throttle__open_latency=0.04)
    yield "decoding", "decode", 1, dict(
        files=48, fmt="csv", storage__store="memory", dataset__data_folder="/causes",
        dataset__record_length_bytes=1048576, reader__decode="full",
        reader__read_threads=1, train__computation_time=0.002)
    yield "memory bandwidth", "memory_bandwidth", 1, dict(
        files=16, storage__store="memory", dataset__data_folder="/causes", reader__batch_size=1,
        dataset__record_length_bytes=16777216, dataset__record_length_bytes_stdev=0, reader__read_threads=2,
        train__epochs=4, train__computation_time=0.0001)
    yield "preprocessing", "preprocess", 1, dict(t, files=100, reader__read_threads=2,
                                                 reader__preprocess_time=0.04)
    yield "no workers", "workers", 1, dict(t, files=160, reader__read_threads=0,
                                           storage__throttle__latency=0.0008)
    yield "one worker", "workers", 1, dict(t, files=200, reader__read_threads=1,
                                           reader__preprocess_time=0.012)
    yield "window", "prefetch", 1, dict(
        t, files=300, reader__read_threads=4, reader__prefetch_size=4, reader__batch_size=1,
        reader__preprocess_time="{type: exponential, scale: 0.028}", train__computation_time=0.01)
    # each rank reads its own hundred files
    for ranks in (2, 4):
        yield f"slow rank of {ranks}", "slow_rank", ranks, dict(
            t, files=100 * ranks, storage__store="fault+memory", reader__order="dlio",
            reader__sample_shuffle="off", reader__file_shuffle="off", storage__fault__op="open",
            storage__fault__nth=1, storage__fault__count=0, storage__fault__path="img_1",
            storage__fault__action="delay", storage__fault__delay=0.02)
    yield "barrier, compute", "barrier", 4, dict(
        t, files=480, train__computation_time="{type: exponential, scale: 0.02}",
        reader__read_threads=1)
    yield "barrier, normal compute", "barrier", 3, dict(
        t, files=360, train__computation_time=0.02, train__computation_time_stdev=0.01)
    yield "checkpoints", "checkpoint", 1, dict(
        t, files=80, workflow__checkpoint="true", checkpoint__steps_between_checkpoints=10,
        checkpoint__checkpoint_folder="/causes-checkpoints", model__model_size_bytes=8388608,
        storage__throttle__bandwidth=3e7, storage__throttle__write="true", reader__read_threads=2)
    yield "cached", "page_cache", 1, dict(
        files=120, fmt="npy", dataset__data_folder=folder, train__computation_time=0.01,
        dataset__record_length_bytes=65536)
    yield "compute", "compute", 1, dict(t, files=120, train__computation_time=0.02,
                                        storage__throttle__latency=0.0005)
    yield "compute, ranks", "compute", 2, dict(t, files=160, train__computation_time=0.03)


def one(name, cause, ranks, keys, out):
    keys = dict(keys)
    stoker("run", *tiny(keys.pop("dataset__data_folder"), out, keys.pop("fmt", "npy"), keys.pop("files"),
                        **keys), "-n", ranks)
    return load(out)["limit"]


class Hogs:
    """Programs that keep every processor busy three times over."""

    def __enter__(self):
        self.busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                     for _ in range(3 * len(os.sched_getaffinity(0)))]

    def __exit__(self, *_):
        for p in self.busy:
            p.kill()
            p.wait()


def try_once(attempt, name, cause, ranks, keys, out):
    """One attempt: (whether the cause is named, what the run says limits it)."""
    limit = one(name, cause, ranks, keys, f"{out}-{attempt}")
    return limit["cause"] == cause, limit


def judge(case, out, first=None):
    """Whether the case is wrong."""
    name, cause = case[:2]
    ok, limit = attempts(name, lambda n: try_once(n, *case, out), first)
    told("Limiting cause", name, limit["text"])
    print(f"{name:26} {cause:18} {'' if ok else 'MISSED '}{limit['text']}", flush=True)
    return not ok


def main():
    if SANITIZED:
        skip("times under a sanitizer are not those of the program")
    wanted = sys.argv[1] if sys.argv[1:] else ""
    misses = 0
    with tempfile.TemporaryDirectory() as tmp, tempfile.TemporaryDirectory(dir=os.getcwd()) as data:
        listed = [c for c in cases(data) if wanted in c[0]]
        # those that wait for most of their time go well together
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            done = [pool.submit(try_once, 0, *c, os.path.join(tmp, str(i))) if "storage__store" in c[3] and
                    c[1] not in ("decode", "compute", "memory_bandwidth") else None for i, c in enumerate(listed)]
        for i, c in enumerate(listed):
            misses += judge(c, os.path.join(tmp, str(i)), done[i].result() if done[i] else None)
            if c[1] == "decode":
                with Hogs():
                    misses += judge(("other programs", "other_programs", *c[2:]), os.path.join(tmp, "hogs"))
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
