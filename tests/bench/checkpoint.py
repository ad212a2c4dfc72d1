#!/usr/bin/env python3
"""Writing checkpoints against fio's sequential write: the same block size, engine (one synchronous request at
a time) and fsync, on a file system over a loop device in memory and in TMPDIR. Ratios, A B A B, medians.

    tests/bench/checkpoint.py BUILD [--gib N] [--memory-gib N] [--rounds N] [--folder DIR]
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

BLOCK = 8 << 20


def ours(tool, folder, size, ranks, access, fsync="true", keep=False):
    shutil.rmtree(folder / "ours", ignore_errors=True)
    done = subprocess.run([tool, "write", "default", str(ranks), "1", "1", "framework=pytorch", "model.type=x",
                           f"model.model_size_bytes={size // ranks}", "model.parallelism.zero_stage=1",
                           f"checkpoint.access={access}", f"checkpoint.block_bytes={BLOCK}", f"checkpoint.fsync={fsync}",
                           f"checkpoint.checkpoint_folder={folder}/ours"], check=True, capture_output=True, text=True)
    if not keep:
        shutil.rmtree(folder / "ours")
    r = json.loads(done.stdout)
    return r["file_bytes"] / r["seconds"], r["cpu_seconds"] / r["file_bytes"], r


def fio(folder, size, jobs):
    done = subprocess.run(["fio", "--name=w", f"--directory={folder}", "--rw=write", f"--bs={BLOCK}", "--ioengine=psync",
                           f"--size={size // jobs // BLOCK * BLOCK}", f"--numjobs={jobs}", "--end_fsync=1", "--group_reporting",
                           "--fallocate=none", "--output-format=json"], check=True, capture_output=True, text=True)
    for f in folder.glob("w.*"):
        f.unlink()
    job = json.loads(done.stdout)["jobs"][0]
    # runtime leaves the final fsync out, job_runtime has it; both in ms
    seconds = job["job_runtime"] / 1000 / jobs
    wrote = job["write"]["io_bytes"]
    cpu = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1000
    return wrote / seconds, cpu / wrote, job


def compare(tool, folder, size, jobs, rounds, where):
    for access in ("native", "framework"):
        a, b = [], []
        for _ in range(rounds):
            a.append(fio(folder, size, jobs))
            b.append(ours(tool, folder, size, jobs, access))
        rate = [statistics.median(x[0] for x in side) for side in (a, b)]
        cpu = [statistics.median(x[1] for x in side) for side in (a, b)]
        print(f"{where}, {jobs} writer(s), {access:9}: {rate[1] / rate[0]:.3f} of fio's rate "
              f"({rate[1] / 1e6:.0f} against {rate[0] / 1e6:.0f} MB/s), {cpu[1] / cpu[0]:.3f} of its CPU", flush=True)


class Loop:
    """ext4 over a loop device over a file in memory."""

    def __init__(self, size):
        self.image = pathlib.Path("/dev/shm", f"stoker-bench-{os.getpid()}")
        self.at = pathlib.Path(tempfile.mkdtemp())
        try:
            subprocess.run(["truncate", "-s", str(size), self.image], check=True)
            self.device = subprocess.run(["losetup", "-f", "--show", self.image], check=True, capture_output=True,
                                         text=True).stdout.strip()
            subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", self.device], check=True)
            subprocess.run(["mount", "-o", "discard", self.device, self.at], check=True)
        except (OSError, subprocess.CalledProcessError):
            self.close()
            raise

    def close(self):
        subprocess.run(["umount", self.at], stderr=subprocess.DEVNULL)
        if getattr(self, "device", None):
            subprocess.run(["losetup", "-d", self.device], stderr=subprocess.DEVNULL)
        self.image.unlink(missing_ok=True)
        self.at.rmdir()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--gib", type=float, default=1)
    p.add_argument("--memory-gib", type=float, default=8)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--folder", default=tempfile.gettempdir())
    a = p.parse_args()
    tool, size = os.path.join(a.build, "tests", "checkpoint_tool"), int(a.gib * (1 << 30))
    if not shutil.which("fio"):
        sys.exit("fio is not installed")
    try:
        loop = Loop(int(size * 1.25) + (64 << 20))
    except (OSError, subprocess.CalledProcessError) as e:
        print(f"no loop device: {e}")
    else:
        try:
            for jobs in (1, 2):
                compare(tool, loop.at, size, jobs, a.rounds, "loop over tmpfs")
        finally:
            loop.close()
    with tempfile.TemporaryDirectory(dir=a.folder) as tmp:
        tmp = pathlib.Path(tmp)
        for jobs in (1, 2):
            compare(tool, tmp, size, jobs, a.rounds, a.folder)
        for access in ("native", "framework"):
            r = ours(tool, tmp, int(a.memory_gib * (1 << 30)), 4, access, "false")[2]
            print(f"{a.memory_gib} GiB by 4 ranks, {access:9}: {r['peak_kib'] / 1024:.1f} MiB at most, "
                  f"{r['stated_bytes'] / (1 << 20):.1f} MiB of it stated, {r['cpu_seconds'] / r['seconds']:.2f} CPUs")


if __name__ == "__main__":
    main()
