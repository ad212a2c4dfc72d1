#!/usr/bin/python3
"""Real jobs whose truth is known, recorded: torch's DataLoader over the readers that people write, and a few jobs that do
not train.

usage: jobs.py list
       jobs.py record DIR [NAME ...] [--with strace|record|darshan] [--vary N]
       jobs.py store DIR OUT NAME ...      the logs of strace without the start of Python, packed, for tests/data

DIR/NAME/truth.json is what the job did, DIR/NAME/NAME.strace (or recording/, darshan/) what was recorded of it. `--vary`
makes other jobs of the same kinds: other sizes, batches, workers, times.
"""
import argparse
import glob
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
PYTHON = "/usr/bin/python3"
STRACE = ["strace", "-f", "-y", "-ttt", "-T", "-s", "0", "--seccomp-bpf", "-e", "trace=%file,%desc,%process,%ipc", "-o"]

# of each: the keys of train.py, and of its data: files, bytes (from, to) a sample, folders
JOBS = {
    "npz-w0": dict(kind="npz", workers=0, files=64),
    "npz-w2": dict(kind="npz", workers=2, files=64),
    "npz-w1-prefetch4": dict(kind="npz", workers=1, prefetch=4, files=48, compute_ms=20),
    "npz-w3-persistent": dict(kind="npz", workers=3, persistent=True, epochs=3, files=60),
    "npz-w4-batch16": dict(kind="npz", workers=4, batch=16, files=256, epochs=1, compute_ms=30),
    "npz-w2-in-order": dict(kind="npz", workers=2, shuffle=False, files=64),
    "npz-w0-drop-last": dict(kind="npz", workers=0, batch=5, drop_last=True, files=48, shuffle=False),
    "npz-w2-same-order": dict(kind="npz", workers=2, same_order=True, files=48, epochs=3),
    "npz-w2-replacement": dict(kind="npz", workers=2, replacement=True, samples_drawn=64, files=64, epochs=3),
    "npz-one-epoch": dict(kind="npz", workers=2, epochs=1, files=80),
    "npy-w2": dict(kind="npy", workers=2, files=64, batch=8),
    "raw-w3": dict(kind="raw", workers=3, files=90, batch=6, compute_ms=15),
    "pt-w2": dict(kind="pt", workers=2, files=64),
    "png-w0": dict(kind="png", workers=0, files=48),
    "png-w2-batch8": dict(kind="png", workers=2, batch=8, files=96, compute_ms=30),
    "jpeg-w2-prefetch4": dict(kind="jpeg", workers=2, prefetch=4, batch=6, files=100),
    "jpeg-w1-drop-last": dict(kind="jpeg", workers=1, batch=7, drop_last=True, files=60),
    "jpeg-folders-w2": dict(kind="jpeg", workers=2, files=80, folders=5),
    "jpeg-w2-decode-bound": dict(kind="jpeg", workers=2, files=48, decode_ms=12, compute_ms=5, limit="decode"),
    "hdf5-w0": dict(kind="hdf5", workers=0, files=4, rows=16),
    "hdf5-w2": dict(kind="hdf5", workers=2, files=4, rows=16),
    "hdf5-chunks-w2": dict(kind="hdf5", workers=2, files=4, rows=16, chunks=True),
    "tfrecord-w0": dict(kind="tfrecord", workers=0, files=4, rows=16, shuffle=False),
    "tfrecord-w2": dict(kind="tfrecord", workers=2, files=8, rows=12),
    "tar-w0": dict(kind="tar", workers=0, files=4, rows=16),
    "tar-w2": dict(kind="tar", workers=2, files=6, rows=16),
    "mmap-w2": dict(kind="mmap", workers=2, files=48),
    "memmap-w2": dict(kind="memmap", workers=2, rows=65536, files=1, samples=64),
    "indexed-w2": dict(kind="indexed", workers=2, rows=65536, files=1, samples=96),
    "npz-w2-evaluation": dict(kind="npz", workers=2, files=64, eval_files=16),
    "jpeg-w0-evaluation": dict(kind="jpeg", workers=0, files=48, eval_files=20, eval_batch=10),
    "npz-w2-persistent-evaluation": dict(kind="npz", workers=2, files=48, eval_files=16, persistent=True, epochs=3),
    "npz-w2-checkpoint-epoch": dict(kind="npz", workers=2, files=64, checkpoint=dict(bytes=4 << 20, name="ckpt_{epoch}.pt")),
    "png-w2-checkpoint-steps": dict(kind="png", workers=2, files=96, checkpoint=dict(
        bytes=2 << 20, every=5, fsync=True, rename=True)),
    "npz-w0-checkpoint-same-name": dict(kind="npz", workers=0, files=64, checkpoint=dict(bytes=3 << 20, every=8, name="last.pt",
                                                                                         rename=True)),
    "mpi-npz-w1": dict(kind="npz", workers=1, files=96, ranks=2, barrier=True),
    "mpi-png-w0": dict(kind="png", workers=0, files=64, ranks=2),
    "npz-w2-storage-bound": dict(kind="npz", workers=2, files=64, compute_ms=4, slow=dict(read_us=2000, direct=1), limit="storage"),
    "jpeg-w0-storage-bound": dict(kind="jpeg", workers=0, files=64, compute_ms=3, slow=dict(read_us=3000, direct=1), limit="storage"),
    "jpeg-w2-labels": dict(kind="jpeg", workers=2, files=64, labels=True),
    "npz-w0-labels": dict(kind="npz", workers=0, files=48, labels=True),
    "png-w2-annotations-log": dict(kind="png", workers=2, files=64, annotations=True, log=True),
    "npz-w2-resume": dict(kind="npz", workers=2, files=64, resume=True, checkpoint=dict(bytes=2 << 20, name="ckpt_{epoch}.pt")),
    "raw-w2-scan": dict(kind="raw", workers=2, files=64, scan=True),
    "npz-w2-max-steps": dict(kind="npz", workers=2, files=80, max_steps=30),
    "npz-w0-keep": dict(kind="npz", workers=0, files=48, keep=True, epochs=3),
    "npz-w2-evaluates-on-train": dict(kind="npz", workers=2, files=48, eval_on_train=True),
    "npz-w2-buckets": dict(kind="npz", workers=2, files=96, buckets=True),
    "mpi-jpeg-w2-evaluation": dict(kind="jpeg", workers=2, files=96, ranks=2, barrier=True, eval_files=24, checkpoint=dict(
        bytes=1 << 20, name="epoch_{epoch}.pt", rename=True)),
    "npz-w2-spawn": dict(kind="npz", workers=2, context="spawn", files=48, epochs=1),
    "threads-4": dict(kind="threads", threads=4, batch=4, files=96, epochs=2, ahead=8, compute_ms=20),
    "copy": dict(kind="shell", files=40, command="cp -r {data} {out}/copy && sync -f {out}"),
    "checksum": dict(kind="shell", files=40, command="md5sum {data}/* > {out}/sums; md5sum -c --quiet {out}/sums"),
    "pack": dict(kind="shell", files=40, command="tar cf {out}/a.tar -C {data} . && gzip -1 {out}/a.tar"),
}
OWN = ("eval_on_train", "files", "eval_files", "folders", "samples", "bytes", "slow", "limit", "chunks", "command", "threads", "ahead")


def varied(name, n):
    """Another job of the kind of `name`."""
    job, r = dict(JOBS[name]), random.Random(f"{name} {n}")
    if not n or job["kind"] == "shell":
        return job
    job["seed"] = 100 * n + r.randrange(100)
    job["compute_ms"] = round(job.get("compute_ms", 25) * r.uniform(0.7, 1.4), 1)
    if job["kind"] in ("npz", "npy", "raw", "pt", "png", "jpeg", "mmap", "threads"):
        job["files"] = max(30, int(job["files"] * r.uniform(0.7, 1.3)))
        if job.get("ranks"):
            job["files"] += job["files"] % 2
        job["bytes"] = r.choice([(2000, 9000), (30000, 30001), (20000, 200000), (300000, 600000)])
    job["batch"] = max(2, job.get("batch", 4) + r.randrange(-2, 4))
    if job.get("workers"):
        job["workers"] = max(1, job["workers"] + r.randrange(-1, 2))
        job["prefetch"] = r.choice([2, 2, 3, 4])
    if job.get("epochs", 2) > 1:
        job["epochs"] = r.choice([2, 3])
    if job.get("samples_drawn"):
        job["samples_drawn"] = job["files"]
    return job


def make_data(job, root):
    """Writes the files of one split; returns the bytes of each sample as stored, where that is defined."""
    import numpy as np
    root.mkdir(parents=True)
    r = np.random.default_rng(job.get("seed", 1))
    kind, n, (low, high) = job["kind"], job["files"], job.get("bytes", (20000, 60000))
    noise = lambda k: r.integers(0, 255, int(k), dtype=np.uint8)
    if kind == "hdf5":
        import h5py
        for i in range(n):
            with h5py.File(root / f"part_{i:03d}.h5", "w") as f:
                f.create_dataset("records", data=noise(job["rows"] * 16384).reshape(job["rows"], -1),
                                 **(dict(chunks=(1, 16384), compression="gzip") if job.get("chunks") else {}))
        return n * job["rows"]
    if kind in ("memmap", "indexed"):
        (root / "all.bin").write_bytes(noise(job["samples"] * job["rows"]).tobytes())
        return job["samples"]
    if kind == "tfrecord":
        import struct
        for i in range(n):
            with open(root / f"part-{i:05d}.tfrecord", "wb") as f:
                for _ in range(job["rows"]):
                    k = int(r.integers(low, high))
                    f.write(struct.pack("<QI", k, 7) + noise(k).tobytes() + struct.pack("<I", 9))
        return n * job["rows"]
    if kind == "tar":
        import io
        import tarfile
        for i in range(n):
            with tarfile.open(root / f"shard-{i:06d}.tar", "w") as t:
                for j in range(job["rows"]):
                    info = tarfile.TarInfo(f"{i:03d}{j:04d}.bin")
                    info.size = int(r.integers(low, high))
                    t.addfile(info, io.BytesIO(noise(info.size).tobytes()))
        return n * job["rows"]
    for i in range(n):
        folder = root / f"class_{i % job['folders']}" if job.get("folders") else root
        folder.mkdir(exist_ok=True)
        if job.get("labels"):
            (folder / f"{'img_' if kind in ('png', 'jpeg') else 's'}{i:04d}.txt").write_text(f"{i % 10}\n")
        k = int(r.integers(low, high))
        if kind == "npz":
            np.savez(folder / f"s{i:04d}.npz", x=noise(k), y=np.int64(i))
        elif kind in ("npy", "mmap"):
            np.save(folder / f"s{i:04d}.npy", noise(max(k, 8192)))
        elif kind == "pt":
            import torch
            torch.save(torch.from_numpy(noise(k)), folder / f"s{i:04d}.pt")
        elif kind in ("png", "jpeg"):
            from PIL import Image
            side = int(k ** 0.5)
            Image.fromarray(noise(side * side).reshape(side, side)).save(folder / f"img_{i:04d}.{'jpg' if kind == 'jpeg' else kind}")
        else:
            (folder / f"s{i:04d}.bin").write_bytes(noise(k).tobytes())
    return n


def record_as(how, folder, name, command):
    """The command that records `command`, its environment, and where the log lies."""
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1",
               OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if how == "strace":
        return [*STRACE, folder / f"{name}.strace", *command], env, [folder / f"{name}.strace"]
    if how == "record":
        return [os.environ.get("STOKER", "build/stoker"), "record", "-o", folder / "recording", "--", *command], env, [folder / "recording"]
    if how == "darshan":
        logs = folder / "darshan"
        logs.mkdir()
        library = os.environ["DARSHAN_LIBRARY"]  # libdarshan.so, built without MPI
        env.update(LD_PRELOAD=library, DARSHAN_ENABLE_NONMPI="1", DARSHAN_LOGPATH=str(logs), DXT_ENABLE_IO_TRACE="1")
        return command, env, logs
    raise SystemExit(f"--with {how}: strace, record or darshan")


def carry_out(command, env, folder):
    """As subprocess.run, but all processes of a job that takes too long are ended."""
    p = subprocess.Popen(command, env=env, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, error = p.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        raise
    return subprocess.CompletedProcess(command, p.returncode, out, error)


def record(name, root, how="strace", vary=0):
    """Makes the data of a job, records the job, writes its truth; returns (truth, logs)."""
    job = varied(name, vary)
    folder = pathlib.Path(root, name)
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    data, out = folder / "train", folder / "out"
    out.mkdir()
    samples = make_data(job, data)
    eval_samples = make_data({**job, "files": job["eval_files"], "seed": 99}, folder / "valid") if job.get("eval_files") else 0
    argument = {k: v for k, v in job.items() if k not in OWN or k in ("threads", "ahead") and job["kind"] == "threads"}
    slow = None
    if job.get("slow"):
        from slow_fs import SlowFs
        slow = SlowFs(data, **job["slow"])
    argument["data"] = slow.__enter__() if slow else str(data)
    if eval_samples:
        argument["eval_data"] = str(folder / "valid")
    if job.get("eval_on_train"):
        argument["eval_data"] = argument["data"]
    if job.get("annotations"):
        argument["annotations"] = str(folder / "annotations.json")
        (folder / "annotations.json").write_text(json.dumps([dict(image=i, label=i % 10) for i in range(20000)]))
    if job.get("log"):
        argument["log"] = str(out / "train.log")
    if job.get("resume"):
        import torch
        argument["resume"] = str(folder / "before.pt")
        torch.save({"model": torch.zeros(1 << 19)}, folder / "before.pt")
    if job.get("checkpoint"):
        argument["checkpoint"] = dict(job["checkpoint"], dir=str(out))
    if job["kind"] == "shell":
        command = ["sh", "-c", job["command"].format(data=data, out=out)]
    elif job["kind"] == "threads":
        command = [PYTHON, HERE / "threads.py", json.dumps(argument)]
    else:
        command = [PYTHON, HERE / "train.py", json.dumps(argument)]
    if job.get("ranks"):
        command = ["mpirun", "--oversubscribe", "-n", str(job["ranks"]), *command]
    load = os.getloadavg()[0]
    try:
        line, env, logs = record_as(how, folder, name, command)
        done = carry_out(list(map(str, line)), env, folder)
    finally:
        if slow:
            slow.__exit__()
    if done.returncode:
        raise SystemExit(f"{name}: status {done.returncode}\n{done.stdout}{done.stderr}")
    if how == "darshan":
        logs = sorted(glob.glob(f"{logs}/**/*.darshan", recursive=True))
    said = [json.loads(s) for s in done.stdout.splitlines() if s.startswith("{")]
    truth = dict(name=name, job=job, data=argument["data"], files=job["files"], samples=samples, eval_samples=eval_samples, said=said,
                 load=max(load, os.getloadavg()[0]) / os.cpu_count(),  # processes that want a processor, each
                 bytes=sum(f.stat().st_size for f in data.rglob("*") if f.is_file()))
    if job.get("labels"):
        truth["files"] *= 2
    if job.get("eval_on_train"):
        truth["eval_samples"] = samples
    if job["kind"] != "shell":
        per_rank = -(-samples // (job.get("ranks") or 1))
        truth.update(
            epochs=job.get("epochs", 2), batch=job.get("batch", 4), workers=job.get("workers"), prefetch=job.get("prefetch", 2),
            drop_last=job.get("drop_last", False), persistent=job.get("persistent", False), ranks=job.get("ranks") or 1,
            order="replacement" if job.get("replacement") else "random" if job.get("shuffle", True) else "none",
            same_order=job.get("same_order", False), limit=job.get("limit", "compute"), per_rank=per_rank,
            compute_s=said[0].get("compute_s"), steps=said[0]["steps"], checkpoints=sum(s.get("saved", 0) for s in said))
    (folder / "truth.json").write_text(json.dumps(truth, indent=1))
    return truth, [str(p) for p in logs]


STARTING = re.compile(r'[<"](/usr/|/lib|/etc/|/proc/|/sys/|/bin/|/root/)')


def store(root, out, name):
    """Without the requests of programs and modules, and with other folders: a log and its truth that a repository can keep."""
    folder = pathlib.Path(root, name)

    def moved(text):
        for at, now in ((str(HERE), "/home/user"), (str(root), "/data"), *((str(p), "/home") for p in HERE.parents[:-1])):
            text = text.replace(at, now)
        return text

    kept, cut = [], set()  # cut: processes whose unfinished call is left out
    for line in open(folder / f"{name}.strace", errors="surrogateescape"):
        pid = line.split(" ", 1)[0]
        if " resumed>" in line:
            if pid not in cut:
                kept.append(line)
            cut.discard(pid)
        elif "execve" in line or not (STARTING.search(line) or "MAP_ANONYMOUS" in line or "TCGETS" in line):
            kept.append(line)
        elif "unfinished" in line:
            cut.add(pid)
    with gzip.GzipFile(pathlib.Path(out, f"{name}.strace.gz"), "wb", mtime=0) as f:
        f.write(moved("".join(kept)).encode(errors="surrogateescape"))
    pathlib.Path(out, f"{name}.json").write_text(moved((folder / "truth.json").read_text()) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["list", "record", "store"])
    p.add_argument("dir", nargs="?")
    p.add_argument("names", nargs="*")
    p.add_argument("--with", dest="how", default="strace")
    p.add_argument("--vary", type=int, default=0)
    a = p.parse_args()
    if a.what == "list":
        print("\n".join(JOBS))
        return
    if a.what == "store":
        for name in a.names[1:]:
            store(a.dir, a.names[0], name)
        return
    for name in a.names or JOBS:
        truth, logs = record(name, a.dir, a.how, a.vary)
        print(name, json.dumps(truth["said"]), *logs, flush=True)


if __name__ == "__main__":
    main()
