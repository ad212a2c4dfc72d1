#!/usr/bin/python3
"""Runs of our own under Darshan's runtime: its counters against ours, and what `stoker explain` makes of its log.

usage: darshan_both_ways.py STOKER [LIBDARSHAN] [FORMAT...]

LIBDARSHAN: libdarshan.so of a Darshan built without MPI (3.3 or later); without it the usual places are searched.
A run of 1 epoch is compared with one of 3, so that what a run reads beside its training (samples are compared with what
they should be) cancels out. Equal must be: bytes and reads of the dataset (Darshan does not see the fstat of current
glibc, which is a request of ours), its opens (an open and a close are two requests of ours; each file is opened twice more
an epoch, for the looks at the page cache), and bytes of checkpoints."""
import glob
import json
import os
import subprocess
import sys
import tempfile

CONFIG = """MOD_ENABLE DXT_POSIX
MODMEM 64
NAMEMEM 16
MAX_RECORDS 20000 POSIX,STDIO,DXT_POSIX
NAME_EXCLUDE ^/usr/ *
NAME_EXCLUDE ^/proc/,^/sys/,^/dev/,^/etc/,^/lib *
"""
JOB = """
framework: pytorch
workflow: {{generate_data: false, train: true, checkpoint: {checkpoint}}}
dataset: {{data_folder: {folder}/data, format: {format}, num_files_train: {files}, num_samples_per_file: {samples},
  record_length_bytes: 40000, verify_samples: 0}}
reader: {{batch_size: 4, read_threads: 2, file_shuffle: seed, sample_shuffle: seed}}
train: {{epochs: {epochs}, computation_time: 0.02}}
checkpoint: {{checkpoint_folder: {folder}/ckpt, model_size: 300000, epochs_between_checkpoints: 1}}
"""
JOBS = {"npz": (24, 1), "npy": (24, 1), "png": (24, 1), "jpeg": (24, 1), "hdf5": (4, 8), "tfrecord": (4, 8), "csv": (8, 1)}


def library(words):
    if words and words[0].endswith(".so"):
        return words.pop(0)
    for place in ("/usr/local/lib", "/usr/lib", "/usr/lib/x86_64-linux-gnu", "/opt/darshan/lib", os.path.expanduser("~/lib")):
        for found in glob.glob(place + "/libdarshan.so"):
            return found
    print("Darshan's runtime is not installed: name its libdarshan.so")
    sys.exit(77)


def counters(stoker, log):
    """Of each file: its POSIX counters. And the number of notes."""
    out = subprocess.run([stoker, "explain", "--counters", log], capture_output=True, text=True, check=True).stdout
    files = {}
    for line in out.split("\n"):
        w = line.split("\t")
        if len(w) == 8 and w[0] == "POSIX":
            files.setdefault(w[5], {})[w[3]] = float(w[4])
    return files, out.count("\n# note:")


def total(files, part, counter):
    return int(sum(c[counter] for name, c in files.items() if part(name)))


# requests of a sample that are no reads: the libraries ask for the file's size
FSTATS = {"npz": 1, "npy": 1, "png": 1, "jpeg": 1, "csv": 0, "hdf5": 2, "tfrecord": 0}


def run(stoker, darshan, fmt, epochs, folder):
    """What Darshan and we count of a run: (bytes, reads or requests, opens, bytes of checkpoints)."""
    count, samples = JOBS[fmt]
    os.makedirs(folder)
    job, log = os.path.join(folder, "job.yaml"), os.path.join(folder, "own.darshan")
    with open(job, "w") as f:
        f.write(JOB.format(folder=folder, format=fmt, files=count, samples=samples, epochs=epochs,
                           checkpoint=str(fmt == "npz").lower()))
    with open(os.path.join(folder, "darshan.conf"), "w") as f:
        f.write(CONFIG)
    subprocess.run([stoker, "generate", job, "-n", "1"], check=True, capture_output=True)
    env = {**os.environ, "LD_PRELOAD": darshan, "DARSHAN_ENABLE_NONMPI": "1", "DARSHAN_LOGFILE": log,
           "DARSHAN_CONFIG_PATH": os.path.join(folder, "darshan.conf")}
    subprocess.run([stoker, "run", job, "-n", "1", "-o", folder + "/res"], check=True, capture_output=True, env=env)
    with open(folder + "/res/result.json") as f:
        training = json.load(f)["training"]
    files, notes = counters(stoker, log)
    data = lambda name: name.startswith(folder + "/data/")
    saved = lambda name: name.startswith(folder + "/ckpt/")
    io = training["io"]
    written = sum(os.path.getsize(p) for p in glob.glob(folder + "/ckpt/**/*", recursive=True) if os.path.isfile(p))
    return log, notes, (
        [total(files, data, "POSIX_BYTES_READ"), total(files, data, "POSIX_READS"), total(files, data, "POSIX_OPENS"),
         total(files, saved, "POSIX_BYTES_WRITTEN")],
        [training["returned_bytes"], io["data"]["requests"] + io["metadata"]["requests"], io["open"]["requests"], written])


def one(stoker, darshan, fmt, folder):
    count, samples = JOBS[fmt]
    _, few, (d1, o1) = run(stoker, darshan, fmt, 1, folder + "/one")
    log, many, (d3, o3) = run(stoker, darshan, fmt, 3, folder + "/three")
    d, o = [b - a for a, b in zip(d1, d3)], [b - a for a, b in zip(o1, o3)]
    want = [o[0], o[1] - 2 * FSTATS[fmt] * count * samples, o[2] // 2 + 2 * 2 * count, o[3]]
    ok = d == want and few + many == 0
    names = ("bytes read", "reads", "opens", "bytes of checkpoints")
    print(f"{fmt}: of two epochs, Darshan and we count: " + ", ".join(
        f"{n} {x}{'' if x == y else f' (not {y})'}" for n, x, y in zip(names, d, want)) + ("" if ok else "  DIFFERENT"))
    said = subprocess.run([stoker, "explain", log], capture_output=True, text=True, check=True).stdout
    for line in said.split("\n"):
        if line.strip().startswith(("files of the dataset", "samples  ", "epochs", "batch size", "workers of", "computation in", "order of")):
            print("  explain: " + " ".join(line.split()))
    return ok


def main():
    stoker, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    darshan = library(words)
    bad = 0
    for fmt in words or JOBS:
        with tempfile.TemporaryDirectory(dir=os.environ.get("STOKER_BENCH_FOLDER", os.path.expanduser("~"))) as folder:
            bad += not one(stoker, darshan, fmt, folder)
    print("equal" if not bad else f"{bad} formats differ")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
