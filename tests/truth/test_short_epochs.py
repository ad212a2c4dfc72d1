"""Epochs so short that most of them is read ahead: AU by DLIO's definition is near 100 % whatever the storage gives. The
whole run leads, and what is promised of a remedy is whole-run AU, which the remedy, applied, must reach."""
# beside one
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path[:0] = [os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "..")]
import result_facts  # noqa: E402
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
    storage = {"remedy.storage": limits, "remedy.latency": ("latency",), "remedy.bandwidth": ("bandwidth",)}
    found = result_facts.find(remedy, "remedy.workers", "remedy.keys", *storage)
    if not found:
        return None, 0, 100
    if found["reason"] == "remedy.workers":
        change = [f"reader.read_threads={found['workers']:.0f}", f"reader.prefetch_size={2 * int(found['workers'])}"]
    elif found["reason"] == "remedy.keys":
        change = found["change"].split()
    else:
        change = [f"{STORE}{k}={v * 2 if k == 'bandwidth' else v / 2}" for k, v in limits.items()
                  if k != "concurrency" and k in storage[found["reason"]]]
    return change, found["low"] - 0.5, found["high"] + 0.5


def check(case, tmp, n):
    name, steps, workers, limits = case
    out = os.path.join(tmp, "".join(c for c in name if c.isalnum()) + str(n))
    r = run(out, steps, workers, limits)
    t, limit = r["training"], r["limit"]
    whole, remedy = t["whole_run_au_percent"], limit.get("remedy", "")
    said = f"{limit['text']} Remedy: {remedy or 'none'}."
    if abs(100 - limit["lost_percent"] - whole) > 0.05 or t["au_mean_percent"] < whole:
        return False, said
    facts = limit.get("remedy_facts", [])
    change, low, high = overrides(facts, limits)
    if change is None:
        return "remedy.untold" in result_facts.reasons(facts) or not r["what_if"]["known"], said
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
