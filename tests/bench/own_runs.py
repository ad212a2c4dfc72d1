#!/usr/bin/python3
"""What `stoker explain` makes of runs of Stoker itself, against what they were.

usage: own_runs.py STOKER [--with strace|record|pfw|darshan ...] [--darshan LIBDARSHAN] [--only PART] [--keep DIR] [-v]

Each run is made once for each way of recording it: under strace, `stoker record`, Darshan's runtime (a libdarshan.so built
without MPI), and with `run.trace=pfw`. With --keep, runs that are in DIR are not made again. The truth is in the workload and in the run's result.json. Prints for each way how
often a value was right, wrong, assumed or not claimed; the exit status is 1 when a claim is wrong. Takes some minutes."""
import argparse
import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from explain import NOTHING, Between, OneOf, battery

STRACE = ["strace", "-f", "-ttt", "-T", "-y", "-s", "16", "--seccomp-bpf", "-e", "trace=%file,%desc,%process,%ipc,prctl", "-o"]
CONFIG = """MOD_ENABLE DXT_POSIX
MODMEM 64
NAMEMEM 16
MAX_RECORDS 20000 POSIX,STDIO,DXT_POSIX
NAME_EXCLUDE ^/usr/ *
NAME_EXCLUDE ^/proc/,^/sys/,^/dev/,^/etc/,^/lib *
"""
JOB = """
framework: pytorch
workflow: {{generate_data: false, train: true, checkpoint: {checkpoint}, evaluation: {evaluation}}}
dataset: {{data_folder: {folder}/data, format: {format}, num_files_train: {files}, num_files_eval: {eval_files},
  num_samples_per_file: {per_file}, record_length_bytes: 20000}}
reader: {{batch_size: {batch}, batch_size_eval: {batch}, read_threads: {workers}, file_shuffle: {shuffle}, sample_shuffle: {shuffle}}}
train: {{epochs: {epochs}, computation_time: {compute}}}
evaluation: {{eval_time: 0.03, epochs_between_evals: 1}}
checkpoint: {{checkpoint_folder: {folder}/ckpt, epochs_between_checkpoints: 1}}
model: {{model_size_bytes: 2000000}}
"""
PLAIN = dict(format="npz", files=48, per_file=1, workers=2, ranks=1, batch=4, epochs=3, compute=0.03, shuffle="seed", checkpoint=False,
             evaluation=False, eval_files=0)


def cases():
    one = [dict(format=f) for f in ("npz", "png", "csv", "hdf5", "tfrecord", "mmap_indexed_binary")]
    for c in one:
        if c["format"] in ("hdf5", "tfrecord", "mmap_indexed_binary"):
            c |= dict(files=4, per_file=12)
    yield from one
    yield from (c | dict(workers=0) for c in one)
    yield dict(checkpoint=True)
    yield dict(workers=0, checkpoint=True)
    yield dict(evaluation=True, eval_files=16)
    yield dict(workers=0, evaluation=True, eval_files=16)
    yield dict(checkpoint=True, evaluation=True, eval_files=16, workers=3, batch=8, epochs=2)
    yield dict(shuffle="off")
    yield dict(ranks=2)
    yield dict(ranks=2, workers=0)
    yield dict(ranks=2, checkpoint=True, format="hdf5", files=4, per_file=12)
    yield dict(ranks=2, evaluation=True, eval_files=16, format="png")


def named(case):
    return "-".join(f"{k[:5]}={v}" for k, v in case.items())


def truth(case, result, way):
    """What may be said of it: {value: truth}."""
    files, samples = case["files"], case["files"] * case["per_file"]
    steps = result["training"]["steps_per_epoch"]
    x = dict(format=case["format"].replace("_", " "), files=files, samples=samples, epochs=result["training"]["epochs_done"],
             ranks=case["ranks"], workers=case["workers"], batch=case["batch"], steps=steps * case["epochs"],
             order="random" if case["shuffle"] == "seed" else "order", limit="compute",
             # on a busy machine, computation takes longer than it should
             compute_s=Between(0.9 * case["compute"], 1.1 * (case["compute"] + result["training"]["compute_overshoot_mean_s"])))
    x["checkpoints"] = case["epochs"] if case["checkpoint"] else NOTHING
    x["evaluations"] = case["epochs"] if case["evaluation"] else NOTHING
    if case["evaluation"]:
        x |= dict(eval_files=case["eval_files"], eval_samples=case["eval_files"] * case["per_file"], eval_batch=case["batch"])
    if case["format"] == "tfrecord":  # a stream
        x["samples"] = OneOf(samples, files)
    if way == "darshan" and "mmap" in case["format"]:  # mappings are counted only
        x = {}
    return x


def run(stoker, case, way, folder, library):
    """Runs it, or takes what is there; (logs, result)."""
    job, res = folder + "/job.yaml", folder + "/res"
    made = os.path.exists(res + "/result.json")
    os.makedirs(folder, exist_ok=True)
    with open(job, "w") as f:
        f.write(JOB.format(folder=folder, **{k: str(v).lower() if isinstance(v, bool) else v for k, v in case.items()}))
    if not made:
        subprocess.run([stoker, "generate", job, "-n", "1"], check=True, capture_output=True)
    env, head, tail, ranks = dict(os.environ), [], [], case["ranks"]
    start = [] if ranks == 1 else ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]
    if way == "strace":
        head, logs = STRACE + [folder + "/job.strace"], folder + "/job.strace"
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # the search for leaks traces, too, and waits for ever
    elif way == "record":
        head, logs = [stoker, "record", "-o", folder + "/recording", "--"], folder + "/recording"
    elif way == "pfw":
        tail, logs = ["run.trace=pfw"], res + "/*.pfw"
    else:
        with open(folder + "/darshan.conf", "w") as f:
            f.write(CONFIG)
        for day in (0, 86400):  # folders by day, which Darshan expects; over midnight, too
            os.makedirs(folder + "/darshan/%d/%d/%d" % time.localtime(time.time() + day)[:3], exist_ok=True)
        logs = folder + "/darshan/**/*.darshan"
        env |= {"LD_PRELOAD": library, "DARSHAN_ENABLE_NONMPI": "1", "DARSHAN_LOGPATH": folder + "/darshan",
                "DARSHAN_CONFIG_PATH": folder + "/darshan.conf"}
        if ranks > 1:
            start += sum((["-x", k] for k in env if k.startswith("DARSHAN") or k == "LD_PRELOAD"), [])
    command = head + start + [stoker, "run", job, "-o", res] + ([] if ranks > 1 else ["-n", "1"]) + tail
    done = None if made else subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
    if done and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}: {(done.stderr + done.stdout)[-500:]}")
    with open(res + "/result.json") as f:
        return sorted(glob.glob(logs, recursive=True)), json.load(f)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("stoker")
    p.add_argument("--with", dest="ways", nargs="+", default=["strace", "record", "pfw", "darshan"])
    p.add_argument("--darshan")
    p.add_argument("--only", default="")
    p.add_argument("--keep")
    p.add_argument("-v", action="store_true")
    args = p.parse_args()
    stoker, bad = os.path.abspath(args.stoker), 0
    if not args.darshan:
        args.ways = [w for w in args.ways if w != "darshan"]
    with tempfile.TemporaryDirectory(dir=os.environ.get("STOKER_BENCH_FOLDER", os.path.expanduser("~"))) as folder:
        folder = args.keep or folder
        for way in args.ways:
            todo = []
            for case in (PLAIN | c for c in cases()):
                name = named({k: v for k, v in case.items() if v != PLAIN[k]}) or "plain"
                if args.only not in f"{way}:{name}":
                    continue
                logs, result = run(stoker, case, way, f"{folder}/{way}/{name}", args.darshan)
                todo.append((name, truth(case, result, way), logs))
            tally, wrong = battery(stoker, todo, args.v)
            print(f"{way}: {len(todo)} runs")
            for key, n in tally.items():
                print(f"  {key:14}", ", ".join(f"{v} {k}" for k, v in sorted(n.items())))
            for w in wrong:
                print("  wrong:", w)
            bad += len(wrong)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
