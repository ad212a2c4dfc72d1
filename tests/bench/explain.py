#!/usr/bin/python3
"""What `stoker explain` claims of real jobs against what they did.

usage: explain.py STOKER [--jobs DIR ...] [--fixtures DIR] [--with strace|record|darshan] [--vary N] [-v]

Each DIR holds jobs recorded by tests/jobs/jobs.py or users.py; without --jobs they are recorded now, into a temporary folder. --fixtures:
a folder with darshan/torch and record, logs of jobs whose truth is below. Prints for each value how often it was right, wrong,
assumed or not claimed; the exit status is 1 when fewer than 95 % of the claims of a value of `MUST` are right.
"""
import argparse
import collections
import glob
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "jobs"))
MUST = ("format", "files", "samples", "epochs", "workers", "batch", "compute_s", "order", "checkpoints", "ranks", "steps", "evaluations")
BUSY = 1.5
EXACT, WRONG, ASSUMED, UNCLAIMED = "exact", "wrong", "assumed", "not claimed"
FORMATS = {"npz": "npz", "npy": "npy", "mmap": "npy", "png": "png", "jpeg": "jpeg", "hdf5": "hdf5", "tfrecord": "tfrecord", "tar": "tar"}


class Between:
    """Any value from one to another."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def __eq__(self, v):
        return isinstance(v, (int, float)) and self.low <= v <= self.high

    def __repr__(self):
        return f"{self.low:g} to {self.high:g}"


class OneOf:
    """Any of several: a log cannot show which."""

    def __init__(self, *values):
        self.values = values

    def __eq__(self, v):
        return v in self.values

    def __repr__(self):
        return " or ".join(map(str, self.values))


NOTHING = object()  # nothing may be claimed


def stated(x):
    """The truth as a job of tests/jobs/users.py states it."""
    if x is None:
        return NOTHING
    if isinstance(x, dict):
        return OneOf(*x["one_of"]) if "one_of" in x else Between(x["from"], x["to"])
    return x


def expected(t):
    """What explain may say of a job of tests/jobs: {value: truth}."""
    if "expects" in t:
        return {k: stated(v) for k, v in t["expects"].items()}
    job, x = t["job"], {}
    if job["kind"] == "shell":
        return {k: NOTHING for k in ("epochs", "batch", "compute_s", "workers", "prefetch", "checkpoints")}
    said, c = t["said"][0], job.get("checkpoint")
    unread = job["kind"] == "memmap"  # a map shows no sample
    seen = Between(0.5 * t["samples"], t["samples"]) if t["drop_last"] or t["order"] == "replacement" else t["samples"]
    if job["kind"] in FORMATS:
        x["format"] = FORMATS[job["kind"]]
    x["samples"] = NOTHING if unread else seen
    x["files"] = t["files"] if t["samples"] != t["files"] else seen
    x["dataset_bytes"] = Between(0.5 * t["bytes"] if t["drop_last"] or t["order"] == "replacement" else t["bytes"] - 4096, t["bytes"])
    x["ranks"], x["epochs"] = t["ranks"], t["epochs"]
    if job["kind"] == "threads":
        x["workers"], x["order"] = job["threads"], "random"
        return x | {"batch": t["batch"], "steps": said["steps"], "compute_s": Between(0.0009 * job["compute_ms"], 0.0011 * job["compute_ms"]),
                    "checkpoints": NOTHING, "evaluations": NOTHING}
    x["workers"], x["batch"], x["steps"] = t["workers"], t["batch"], said["steps"]
    x["compute_s"] = Between(0.9 * t["compute_s"], 1.1 * t["compute_s"])
    x["order"] = {"random": "random", "none": "in order", "replacement": "replacement"}[t["order"]]
    if job["kind"] in ("tfrecord", "tar"):  # only whole files are shuffled
        x["order"] = "files" if t["order"] == "random" else "in order"
    if t["workers"]:
        x["prefetch"] = t["prefetch"] * t["workers"]
        if t["epochs"] > 1:
            x["persistent_workers"] = t["persistent"]
    if t["samples"] != t["files"]:
        x["samples_per_file"] = t["samples"] / t["files"]
    x["checkpoints"] = t["checkpoints"] or NOTHING
    if c:
        x["checkpoint_bytes"] = Between(c["bytes"], 1.02 * c["bytes"] + 4096)
        x["checkpoint_fsync"], x["checkpoint_rename"] = c.get("fsync", False), c.get("rename", False)
        per = {s for s in said["steps_per_epoch"]}
        x["steps_between_checkpoints"] = c.get("every") or per.pop()
        x["checkpoint_stops_training"] = True
    x["evaluations"] = t["epochs"] if t["eval_samples"] else NOTHING
    if t["eval_samples"]:
        x["eval_files"] = x["eval_samples"] = t["eval_samples"]
        x["eval_batch"] = job.get("eval_batch") or t["batch"]
    x["limit"] = t["limit"]
    if t.get("load", 0) > BUSY:  # the trainer itself waited for a processor, which is no sleep of the job
        del x["compute_s"]
    if job.get("labels"):  # a sample is two files
        del x["samples_per_file"]
        x["files"] = OneOf(t["samples"], 2 * t["samples"])
    if job.get("buckets"):
        x["batch"] = NOTHING
    if job.get("keep"):  # later epochs read nothing
        x["epochs"], x["steps"] = OneOf(1, t["epochs"]), OneOf(said["steps_per_epoch"][0], said["steps"])
    if job.get("eval_on_train"):
        x["epochs"], x["steps"] = OneOf(t["epochs"], 2 * t["epochs"]), OneOf(said["steps"], said["steps"] + said["eval_steps"])
        for k in ("evaluations", "eval_files", "eval_samples", "eval_batch", "order"):
            del x[k]
    return x


def fixture(fmt, workers, batch=4, epochs=2, compute_ms=25, persistent=False, checkpoints=0, bytes=33755):
    x = dict(format=fmt, samples=64, files=4 if fmt == "hdf5" else 64, epochs=epochs, workers=workers, batch=batch, ranks=1,
             steps=64 // batch * epochs, compute_s=Between(0.9e-3 * compute_ms, 1.1e-3 * compute_ms), order="random",
             checkpoints=checkpoints or NOTHING, evaluations=NOTHING, limit="compute")
    if workers:
        x |= dict(prefetch=2 * workers, persistent_workers=persistent)
    if checkpoints:
        x |= dict(checkpoint_bytes=Between(bytes, bytes), checkpoint_fsync=False, checkpoint_rename=False)
    return x


FIXTURES = {
    "darshan/torch/torch-npz-w2": fixture("npz", 2, checkpoints=2),
    "darshan/torch/torch-npz-w0": fixture("npz", 0, checkpoints=2),
    "darshan/torch/torch-npz-w0-bzip2": fixture("npz", 0, checkpoints=2),
    "darshan/torch/torch-npz-w3-persistent": fixture("npz", 3, epochs=3, persistent=True),
    "darshan/torch/torch-png-w2": fixture("png", 2, batch=8, compute_ms=30),
    "darshan/torch/torch-hdf5-w2": fixture("hdf5", 2),
    # of this log, records of most files were left out
    "darshan/torch/torch-npz-partial": {"files": NOTHING, "samples": NOTHING, "steps": NOTHING},
    "record/strace-torch-npz-w2": fixture("npz", 2, checkpoints=2),
    "record/strace-torch-hdf5-w2": fixture("hdf5", 2, checkpoints=2),
    "record/strace-torch-png-w0": fixture("png", 0, checkpoints=2),
}


def of_fixtures(root):
    for name, x in FIXTURES.items():
        logs = sorted(glob.glob(f"{root}/{name}/*.darshan")) or sorted(glob.glob(f"{root}/{name}.strace*"))
        if logs:
            yield name, x, logs


def of_jobs(root):
    for t in sorted(pathlib.Path(root).glob("*/truth.json")):
        folder = t.parent
        logs = sorted(map(str, folder.glob("*.strace*"))) or sorted(map(str, folder.glob("darshan/**/*.darshan")))
        logs = logs or ([str(folder / "recording")] if (folder / "recording").exists() else [])
        if logs:
            truth = json.loads(t.read_text())
            said = expected(truth)
            if truth.get("load", 0) > BUSY:
                said.pop("compute_s", None)
            yield f"{pathlib.Path(root).name}/{folder.name}", said, logs


def judge(value, truth):
    """One claim: (verdict, what was said)."""
    how = (value or {}).get("how", "absent")
    if truth is NOTHING:
        claims = how in ("seen", "inferred") and value.get("value") not in (0, False, None)
        return (WRONG if claims else EXACT), value.get("value") if value else "nothing"
    if how == "absent" and truth in (0, False):
        return EXACT, 0
    if how in ("absent", "unknown"):
        return UNCLAIMED, (value or {}).get("why")
    said = value.get("value")
    if how == "assumed":
        return ASSUMED, said
    if value.get("at_most"):
        return (EXACT if (truth.low if isinstance(truth, Between) else truth) <= said else WRONG), f"at most {said}"
    if value.get("at_least"):
        return (EXACT if said <= (truth.high if isinstance(truth, Between) else truth) else WRONG), f"at least {said}"
    if isinstance(truth, str):
        right = truth in str(said).replace("_", " ")
    else:
        right = truth == said or isinstance(said, float) and not isinstance(truth, Between) and abs(said - truth) <= 1e-9 * abs(truth)
    return (EXACT if right else WRONG), said


def battery(stoker, cases, verbose=False):
    """Goes through (name, truth, logs); returns ({value: Counter}, [what is wrong])."""
    tally, wrong = collections.OrderedDict(), []
    for name, x, logs in cases:
        done = subprocess.run([stoker, "explain", "--json", *logs], capture_output=True, text=True, timeout=300)
        if done.returncode:
            wrong.append(f"{name}: status {done.returncode}: {done.stderr.strip()}")
            continue
        values = json.loads(done.stdout)["values"]
        line = []
        for key, truth in x.items():
            verdict, said = judge(values.get(key), truth)
            tally.setdefault(key, collections.Counter())[verdict] += 1
            shown = "nothing" if truth is NOTHING else truth
            if verdict == WRONG:
                v = values[key]
                wrong.append(f"{name}: {key}: {said}, not {shown} ({v['how']}: {v.get('rule', '')} {v.get('agree', '')}/{v.get('of', '')})  {logs[0]}")
            if verbose and verdict != EXACT:
                line.append(f"{key}: {verdict} ({said}; truth {shown})")
        if verbose:
            print(name, *line, sep="\n    ")
    return tally, wrong


def show(tally):
    print(f"{'value':<26}" + "".join(f"{k:>12}" for k in (EXACT, WRONG, ASSUMED, UNCLAIMED)))
    for key, n in tally.items():
        print(f"{key:<26}" + "".join(f"{n[k]:>12}" for k in (EXACT, WRONG, ASSUMED, UNCLAIMED)))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("stoker")
    p.add_argument("--jobs", nargs="*")
    p.add_argument("--fixtures", default="")
    p.add_argument("--with", dest="how", default="strace")
    p.add_argument("--vary", type=int, default=0)
    p.add_argument("-v", "--verbose", action="store_true")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        roots = a.jobs
        if roots is None:
            import jobs
            import users
            for kind in (jobs, users):
                for name in kind.JOBS:
                    kind.record(name, f"{folder}/{kind.__name__}", a.how, a.vary)
            roots = [f"{folder}/jobs", f"{folder}/users"]
        cases = [c for r in roots for c in of_jobs(r)] + (list(of_fixtures(a.fixtures)) if a.fixtures else [])
        tally, wrong = battery(a.stoker, cases, a.verbose)
    print(f"{len(cases)} jobs")
    show(tally)
    print(*wrong, sep="\n")
    short = [k for k in MUST if k in tally and tally[k][EXACT] < 0.95 * (tally[k][EXACT] + tally[k][WRONG])]
    if short:
        print("below 95 %:", ", ".join(short))
    sys.exit(bool(short))


if __name__ == "__main__":
    main()
