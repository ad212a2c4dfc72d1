"""Advice beyond workers, followed: many samples in few files, native access, checkpoints further apart or in the
background. Each run says what its changes would give; they are made, and the whole-run AU of the second run must lie in
the stated interval. Where there can be no promise, none is made, with a reason. The stores sleep, so that other programs
hardly matter; a case that misses is repeated and must be right in 3 of 4 attempts."""
# beside one
# tier: long
import concurrent.futures
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))
sys.path.insert(0, os.path.dirname(__file__))
from remedies import disturbed  # noqa: E402
from told import told  # noqa: E402
from util import attempts, load, stoker, tiny  # noqa: E402

PACKED, NATIVE = "dataset.num_samples_per_file=", "reader.access=native"
APART, ASYNC = "_between_checkpoints=", "checkpoint.async=true"
WORDS = {PACKED: "many samples in few files", NATIVE: "native access", APART: "checkpoints twice as far apart",
         ASYNC: "checkpoints in the background"}
DISTURBED_TRIES = 3
HELPS = 5  # points: advice that is given first must bring that much


def store(**keys):
    return {"storage__throttle__" + k: v for k, v in keys.items()}


SAVES = dict(workflow__checkpoint="true", model__model_size_bytes=2 << 20, checkpoint__checkpoint_folder="/saved",
             checkpoint__access="native", checkpoint__block_bytes=262144, storage__throttle__write="true")
SLOW_OPENS = dict(train__computation_time=0.004, **store(open_latency=0.02))

# (situation, ranks, keys, changes that must have a figure, what the remedy is about, changes that must have none)
CASES = [
    ("hdf5 files of one sample, opens of 20 ms", 1, dict(fmt="hdf5", files=256, **SLOW_OPENS), [PACKED], "remedy.packed", []),
    ("hdf5 files of one sample, read as h5py does, opens of 20 ms", 1,
     dict(fmt="hdf5", files=128, reader__access="framework", **SLOW_OPENS), [NATIVE], "remedy.", []),
    ("npz files of one sample, opens of 20 ms", 1, dict(fmt="npz", files=256, **SLOW_OPENS), [PACKED], "remedy.packed", []),
    ("hdf5 files of one sample in random order, opened one at a time for 4 ms, 4 ranks", 4,
     dict(fmt="hdf5", files=512, reader__read_threads=1, reader__sample_shuffle="random", reader__file_shuffle="random",
          train__computation_time=0.02, **store(open_latency=0.004, open_concurrency=1)), [PACKED], "remedy.packed", []),
    ("npz files as NumPy reads them, 3 ms a request", 1,
     dict(fmt="npz", files=100, reader__access="framework", train__computation_time=0.012, **store(latency=0.003)),
     [NATIVE], NATIVE, [PACKED]),
    ("npz files, a store of 12 MB/s", 1,
     dict(fmt="npz", files=100, reader__access="framework", train__computation_time=0.006, **store(bandwidth=12e6)), [], "",
     [PACKED]),
    ("a checkpoint every 10 steps, computation limits besides", 1,
     dict(files=200, checkpoint__steps_between_checkpoints=10, **SAVES, **store(bandwidth=20e6)), [APART, ASYNC], "checkpoint",
     []),
    ("a checkpoint every 10 steps, reading limits besides", 1,
     dict(files=160, checkpoint__steps_between_checkpoints=10, train__computation_time=0.004, **SAVES,
          **store(bandwidth=10e6)), [APART], "", []),
    ("a checkpoint after each epoch", 1,
     dict(files=60, train__epochs=4, train__computation_time=0.015, **SAVES, **store(bandwidth=20e6)), [APART, ASYNC],
     "checkpoint", []),
    ("a checkpoint every 0.5 s", 1,
     dict(files=200, checkpoint__seconds_between_checkpoints=0.5, **SAVES, **store(bandwidth=20e6)), [APART, ASYNC],
     "checkpoint", []),
    ("one checkpoint", 1,
     dict(files=100, checkpoint__steps_between_checkpoints=30, **SAVES, **store(bandwidth=10e6)), [], "remedy.untold", [APART]),
]


def run(keys, ranks, change=""):
    base = dict(fmt="npy", files=100, dataset__record_length_bytes=65536, reader__access="native", reader__prefetch_size=4,
                reader__read_threads=2, reader__batch_size=2, train__computation_time=0.02,
                storage__store="throttle+memory") | keys
    fmt, files = base.pop("fmt"), base.pop("files")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as out:
        for _ in range(DISTURBED_TRIES):
            stoker("run", *tiny("/advice", out, fmt, files, **base), *change.split(), "-n", ranks)
            result = load(out)
            # what other programs took of the processors is not foretold
            if not disturbed(result, base["train__computation_time"]):
                break
        return result


def value(row):
    """By which the change that is smallest comes first."""
    number = row[0].split()[-1].split("=")[1]
    return float(number) if number.replace(".", "").isdigit() else 0


def once(case):
    """(whether it is right, [(change, what was said and measured)], the remedy, what is wrong)."""
    _, ranks, keys, wanted, about, absent = case
    first = run(keys, ranks)
    now = first["training"]["whole_run_au_percent"]
    changes = first["what_if"].get("changes", [])
    remedy, facts = first.get("limit", {}).get("remedy", ""), first.get("limit", {}).get("remedy_facts", [])
    about_it = " ".join([f["reason"] for f in facts] + [t for f in facts for t in f.get("texts", {}).values()])
    about_it += f" {ASYNC}" if "remedy.async_copy" in about_it else ""
    wrong, rows = [], []
    if about not in about_it:
        wrong.append(f"the remedy is '{remedy}'")
    wrong += [f"no figure for {w}: {first['what_if'].get('why', '')}" for w in wanted
              if not any(w in c["change"] and "whole_au_percent" in c for c in changes)]
    wrong += [f"a figure for {a}" for a in absent if any(a in c["change"] and "whole_au_percent" in c for c in changes)]
    for c in changes:
        kind = next((w for w in (PACKED, APART, ASYNC) if w in c["change"]), c["change"] if c["change"] == NATIVE else "")
        if not kind:
            continue
        if "low_percent" not in c:
            rows.append((c["change"], f"no figure: {c['why']}"))
            continue
        real = run(keys, ranks, c["change"])["training"]["whole_run_au_percent"]
        figure = f"{c['whole_au_percent']:.1f} %" if "whole_au_percent" in c else f"no figure ({c['why']})"
        text = f"said: {figure}, {c['low_percent']:.1f} to {c['high_percent']:.1f} %; measured: {real:.1f} %"
        rows.append((c["change"], f"AU {now:.0f} %; {text}"))
        if not c["low_percent"] - 0.05 <= real <= c["high_percent"] + 0.05:
            wrong.append(f"{c['change']}: {text}")
        if c["change"] in about_it or (PACKED in c["change"] and "remedy.packed" in about_it):
            wrong += [f"{c['change']} brings {real - now:.1f} points"] if real - now < HELPS else []
    return not wrong, (rows, remedy, wrong)


def main():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(once, CASES))
    failed = []
    for case, first in zip(CASES, found):
        right, (rows, remedy, wrong) = attempts(case[0], lambda n, c=case: once(c), first)
        for change, said in rows:
            print(f"{case[0]}: {change}: {said}", flush=True)
        print(f"{case[0]}: to change it: {remedy}", flush=True)
        for wanted in case[3]:
            said = next((s for c, s in sorted(rows, key=value) if wanted in c), "nothing")
            told("advice", f"{case[0]}: {WORDS[wanted]}", said)
        told("advice", f"{case[0]}: to change it", remedy or "no change is promised")
        if not right:
            failed.append((case[0], wrong))
    assert not failed, failed


if __name__ == "__main__":
    main()
