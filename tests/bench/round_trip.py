#!/usr/bin/python3
"""A real job, recorded; replayed; and emulated from the workload that `stoker explain` makes of it. How near do both come?

usage: round_trip.py STOKER [NAME ...] [--repeat N] [--keep DIR] [--out FILE]

Six jobs of PyTorch (tests/jobs/jobs.py): npz without and with workers, png, hdf5, a slow file system, checkpoints; or those that
are named, or all with `--all`. Of streams (tfrecord, tar) a step of the model is a file: steps are not compared. Each repetition records the job anew, because the machine changes between them; the replay and the run follow at once. Printed is
the median of the repetitions. Wanted: requests and bytes equal, steps within 2 %, run time within 3 % where computation
limits and 10 % where storage does. The exit status is 1 when something is missed.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "jobs")]
import jobs  # noqa: E402
from slow_fs import SlowFs  # noqa: E402

SIX = ("npz-w0", "npz-w2", "png-w0", "hdf5-w2", "npz-w2-storage-bound", "npz-w2-checkpoint-epoch")
# what a run asks beside its training, and files that are not warm
QUIET = ("dataset.verify_samples=0", "storage.page_cache_files=0", "framework.costs=torch-1.13")


def call(*args, cwd=None):
    done = subprocess.run([*map(str, args)], capture_output=True, text=True, cwd=cwd, timeout=300)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"{' '.join(map(str, args))}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def change(a, b):
    return 100 * (b - a) / a if a and b else float("nan")


def steps(f, job):
    """Where storage limits, batches of workers come in pairs: there the mean says how long steps are, else the median."""
    which = "mean" if job.get("limit") == "storage" else "median"
    return change(f["step"][f"log_{which}_s"], f["step"][f"here_{which}_s"])


def share(f, key):
    return 100 if f[key] is None else 100 * f[key]


def one(stoker, name, folder, can_model):
    """{what: figure} of one repetition."""
    job = jobs.varied(name, 0)
    truth, logs = jobs.record(name, folder, "record")
    x = {"job_s": truth["said"][0].get("seconds")}
    with contextlib.ExitStack() as stack:
        data = pathlib.Path(folder, name, "data")
        data.mkdir()
        if job.get("slow"):
            data = pathlib.Path(stack.enter_context(SlowFs(data, **job["slow"])))
        call(stoker, "replay", *logs, "--data", data / "image", "--only-files")
        f = json.loads(call(stoker, "replay", *logs, "--data", data / "image", "--json"))
        x.update(replay_requests=share(f, "requests_equal"), replay_others=share(f, "other_requests_equal"),
                 replay_bytes=change(f["bytes_read"]["log"], f["bytes_read"]["here"]),
                 replay_step=steps(f, job), replay_ks=f["step"]["ks"],
                 replay_run=change(f["run_s"]["log"], f["run_s"]["here"]))
        if can_model:
            yaml, out = pathlib.Path(folder, name, "job.yaml"), pathlib.Path(folder, name)
            call(stoker, "explain", *logs, "-o", yaml)
            keys = (f"dataset.data_folder={data}/generated", f"checkpoint.checkpoint_folder={data}/checkpoints", *QUIET)
            call(stoker, "generate", yaml, *keys)
            call(stoker, "record", "-o", out / "run", "--", stoker, "run", yaml, "-n", job.get("ranks") or 1, *keys,
                 "workflow.generate_data=false", "-o", out / "result")
            f = json.loads(call(stoker, "explain", *logs, "--fidelity", out / "run", "--fidelity", out / "result", "--json"))
            result = json.loads((out / "result/result.json").read_text())
            wall = result["training"]["decomposition"]["wall_s"] + sum(
                e["wall_s"] for e in result.get("evaluation", {}).get("epochs", []))
            x.update(model_requests=share(f, "requests_equal"), model_bytes=change(f["bytes_read"]["log"], f["bytes_read"]["here"]),
                     model_step=steps(f, job), model_ks=f["step"]["ks"],
                     model_tau=f["order_tau"], model_run=change(x["job_s"] or f["run_s"]["log"], wall))
    return x


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("stoker")
    p.add_argument("names", nargs="*")
    p.add_argument("--all", action="store_true")
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--keep")
    p.add_argument("--out")
    a = p.parse_args()
    stoker = pathlib.Path(a.stoker).resolve()
    os.environ["STOKER"] = str(stoker)
    can_model = ".yaml" in call(stoker, "explain", "--help")
    if not can_model:
        print("this program makes no workload of a log: only the replay is compared")
    missed, found = [], {}
    training = [n for n, j in jobs.JOBS.items() if j["kind"] not in ("shell", "memmap")]
    for name in a.names or (training if a.all else SIX):
        with tempfile.TemporaryDirectory() as tmp:
            all_of = [one(stoker, name, a.keep or tmp, can_model) for _ in range(a.repeat)]
        x = {k: statistics.median([v for v in (r[k] for r in all_of) if v is not None and v == v] or [float("nan")]) for k in all_of[0]}
        found[name] = {"median": x, "all": all_of}
        most = 10 if jobs.JOBS[name].get("limit") == "storage" else 3
        for how in ("replay", "model") if can_model else ("replay",):
            print(f"{name:24} {how:6}  requests {x[how + '_requests']:6.2f} %  bytes {x[how + '_bytes']:+6.2f} %  step {x[how + '_step']:+6.2f} %"
                  f" (KS {x[how + '_ks']:.2f})  run {x[how + '_run']:+6.2f} %", flush=True)
            if x[how + "_requests"] < 100 or x[how + "_bytes"]:
                missed.append(f"{name} {how}: requests or bytes differ")
            streams = jobs.JOBS[name]["kind"] in ("tfrecord", "tar")
            if not (streams and how == "model") and not abs(x[how + "_step"]) <= (2 if most == 3 else 10):
                missed.append(f"{name} {how}: step")
            if not abs(x[how + "_run"]) <= most:
                missed.append(f"{name} {how}: run time")
    if a.out:
        pathlib.Path(a.out).write_text(json.dumps(found, indent=1))
    print("missed: " + ("; ".join(missed) or "nothing"))
    sys.exit(bool(missed))


main()
