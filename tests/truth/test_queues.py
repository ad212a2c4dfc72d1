"""Stores that serve one request after another, or so many a second, or open files one at a time: more workers are not
promised in vain, and a probe tells them from stores that serve each reader at its own rate. Applied, every promise must
come out within its interval; what cannot be told must be said to be unknown."""
# beside one
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import result_facts  # noqa: E402
from told import told  # noqa: E402
from util import attempts, load, stoker, tiny  # noqa: E402

GROUP = "Queues and ceilings of the storage"
COMPUTE = 0.02
FILES = 80
STORE = "storage__throttle__"
TENSORFLOW = dict(framework="tensorflow", reader__data_loader="tensorflow")

# words; ranks; workers; keys of the throttle; others; whether the probe is on; what must be said:
# "more" workers that help, "none" that do, or that it is "unknown"
CASES = [
    ("11 ms a read, each reader by itself, 2 workers; probed", 1, 2, dict(latency=0.011), {}, True, "more"),
    ("the same without a probe", 1, 2, dict(latency=0.011), {}, False, "unknown"),
    ("one read at a time, 5 ms each, 2 workers; probed", 1, 2, dict(latency=0.005, concurrency=1), {}, True, "none"),
    ("the same without a probe: two workers in turn", 1, 2, dict(latency=0.005, concurrency=1), {}, False,
     "none or unknown"),
    ("one queue of 5 MB/s for 2 equal ranks; probed", 2, 1, dict(concurrency=1, stream_bandwidth=5e6), {}, True, "none"),
    ("two reads at a time, 9 ms each, 4 workers; probed", 1, 4, dict(latency=0.009, concurrency=2), {}, True, "none"),
    ("170 reads/s, evenly, 2 workers; probed", 1, 2, dict(iops=170), {}, True, "none"),
    ("240 reads/s in slices of 0.1 s, 3 workers; probed", 1, 3, dict(iops=240, iops_slice=0.1), {}, True, "none"),
    ("one open at a time, 17 ms each, 3 workers; probed", 1, 3, dict(open_latency=0.017, open_concurrency=1), {}, True,
     "none"),
    ("each open takes 45 ms, 2 workers; probed", 1, 2, dict(open_latency=0.045), {}, True, "more"),
    ("three reads at a time, 7 ms each, 2 ranks of tf.data; probed", 2, 3, dict(latency=0.007, concurrency=3), TENSORFLOW,
     True, "none"),
    ("a bandwidth of 6 MB/s shared by 2 ranks; probed", 2, 2, dict(bandwidth=6e6), {}, True, "none"),
]


def run(case, out, change=()):
    _, ranks, workers, throttle, keys, probe, _ = case
    keys = dict(dict(storage__store="throttle+memory", dataset__record_length_bytes=65536, reader__read_threads=workers,
                     dataset__record_length_bytes_stdev=16000, reader__prefetch_size=2 * workers,
                     train__computation_time=COMPUTE), **keys, **{STORE + k: v for k, v in throttle.items()})
    if not change:
        keys.update(run__probe=str(probe).lower(), run__probe_time=1.5)
    stoker("run", *tiny("/queues", out, "npy", FILES * ranks, **keys), *change, "-n", ranks)
    return load(out)


def check(case, n):
    """Attempt n: (whether all was right, what was said or found)."""
    words, _, workers, _, keys, _, expected = case
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        r = run(case, os.path.join(tmp, "base"))
        said, w = r["limit"]["text"], r["what_if"]
        if not w["known"]:
            return False, f"{said} (no prediction: {w['why']})"
        needed = w["workers_for_90_percent"] or w.get("workers_best")
        more = workers * 2
        name = next(c for c in w["changes"] if f"reader.read_threads={more}" in c["change"].split())
        promised = result_facts.reasons(r["limit"]["effects"]) & {"effect.workers", "effect.workers_below",
                                                                  "effect.workers_enough"}
        told_unknown = w["untold"] is not None and "whole_au_percent" not in name
        right = {"more": needed is not None and needed > workers and promised,
                 "none": needed is None and not told_unknown and not promised,
                 "unknown": told_unknown and not promised}
        # reads that happened to be alone may tell it without a probe
        right["none or unknown"] = right["none"] or right["unknown"]
        right = right[expected]
        if not right:
            return False, f"{said} ({needed} workers, {name})"
        promise = dict(name)
        if expected == "more":
            each = "" if keys else f" reader.prefetch_size={2 * needed}"
            promise = dict(change=f"reader.read_threads={needed}{each}", low_percent=w["workers_low_percent"],
                           high_percent=w["workers_high_percent"])
        if "low_percent" not in promise:
            return True, f"{said} No figure for {promise['change']}."
        real = run(case, os.path.join(tmp, "more"), promise["change"].split())["training"]["whole_run_au_percent"]
        inside = promise["low_percent"] <= real <= promise["high_percent"]
        return inside, f"{said} Applied, {promise['change']}: {real:.1f} %, stated {promise['low_percent']:.1f} to " \
                       f"{promise['high_percent']:.1f}."


def main():
    with ThreadPoolExecutor(3) as pool:
        first = list(pool.map(lambda c: check(c, 0), CASES))
    wrong = []
    for case, one in zip(CASES, first):
        right, said = attempts(case[0], lambda n, c=case: check(c, n), one)
        told(GROUP, case[0], said)
        print(f"{'ok' if right else 'WRONG'}: {case[0]}: {said}", flush=True)
        if not right:
            wrong.append(case[0])
    assert not wrong, wrong


if __name__ == "__main__":
    main()
