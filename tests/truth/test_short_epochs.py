"""Epochs so short that most of them is read ahead: AU by DLIO's definition is near 100 % whatever the storage gives. The
whole run leads, and what is promised of a remedy is whole-run AU, which the remedy, applied, must reach."""
import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path[:0] = [os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "..")]
from told import told  # noqa: E402
from util import SANITIZED, attempts, load, skip, stoker, tiny  # noqa: E402

GROUP = "Short epochs"
STORE = "storage.throttle."
# (situation, steps of an epoch, workers, limits of the store)
CASES = (
    ("20 MB/s for 4 workers, 4 steps, all read ahead", 4, 4, {"bandwidth": 20e6}),
    ("60 MB/s for 4 workers, 4 steps, all read ahead", 4, 4, {"bandwidth": 60e6}),
    ("20 MB/s for 4 workers, 10 steps", 10, 4, {"bandwidth": 20e6}),
    ("40 MB/s and 10 ms a request, 4 workers, 10 steps", 10, 4, {"bandwidth": 40e6, "latency": 0.01}),
    ("one request at a time, 5 ms each, 4 workers, 4 steps", 4, 4, {"latency": 0.005, "concurrency": 1}),
)


def run(out, steps, workers, limits, *change):
    keys = {STORE + k: v for k, v in limits.items()}
    stoker("run", *tiny("/short", out, "npy", 4 * steps, storage__store="throttle+memory", dataset__record_length_bytes=250000,
                        reader__batch_size=4, reader__read_threads=workers, reader__prefetch_size=2 * workers, train__epochs=3,
                        train__computation_time=0.05), *[f"{k}={v}" for k, v in keys.items()], *change)
    return load(out)


def overrides(remedy, limits):
    """What the remedy asks for, as keys; and the interval it promises."""
    found = re.match(r"(?:no setting of the loader; )?(.*): AU (\d+) % \((\d+) to (\d+)\)", remedy)
    if not found:
        return None, 0, 100
    what = found[1]
    workers = re.match(r"(\d+) workers? per accelerator", what)
    if workers:
        change = [f"reader.read_threads={workers[1]}", f"reader.prefetch_size={2 * int(workers[1])}"]
    elif "=" in what:
        change = what.split()
    else:
        change = [f"{STORE}{k}={v * 2 if k == 'bandwidth' else v / 2}" for k, v in limits.items()
                  if k != "concurrency" and ("in all" in what or k in what)]
    return change, int(found[3]) - 0.5, int(found[4]) + 0.5


def check(case, tmp, n):
    name, steps, workers, limits = case
    out = os.path.join(tmp, "".join(c for c in name if c.isalnum()) + str(n))
    r = run(out, steps, workers, limits)
    t, limit = r["training"], r["limit"]
    whole, remedy = t["whole_run_au_percent"], limit.get("remedy", "")
    said = f"{limit['text']} Remedy: {remedy or 'none'}."
    if not limit["text"].startswith(f"Whole-run AU {whole:.1f} %: ") or t["au_mean_percent"] < whole:
        return False, said
    change, low, high = overrides(remedy, limits)
    if change is None:
        return remedy.startswith("not known") or not r["what_if"]["known"], said
    real = run(out + "-with", steps, workers, limits, *change)["training"]["whole_run_au_percent"]
    said += f" Applied, {' '.join(change)}: {real:.1f} %."
    return low <= real <= high and real > whole, said


def main():
    if SANITIZED:
        skip("times under a sanitizer are not those of the program")
    wrong = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp, ThreadPoolExecutor(3) as pool:
        first = list(pool.map(lambda c: check(c, tmp, 0), CASES))
        for case, one in zip(CASES, first):
            right, said = attempts(case[0], lambda n, c=case: check(c, tmp, n), one)
            told(GROUP, case[0], said)
            print(f"{'ok' if right else 'WRONG'}: {case[0]}: {said}", flush=True)
            wrong += [] if right else [case[0]]
    assert not wrong, wrong


if __name__ == "__main__":
    main()
