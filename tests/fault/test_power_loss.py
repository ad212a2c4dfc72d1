"""Power is lost while a command writes: what is there afterwards is whole or named as not whole, what the command had
reported as done is there, and the same command afterwards ends as if nothing had happened.

The disk is a log of writes and flushes with a real file system on it (tests/power_loss.py); the commands, and what must
hold of what they leave, are those of test_kill.py. By default a few moments of each; --cuts 0 takes each flush, with all,
none and some of the writes since the flush before it.

    test_power_loss.py [CASE...] [--fs ext4,xfs,btrfs] [--cuts N] [--seed N] [--only CUT:KEEP]
"""
# tier: long
# takes 60 s
import argparse
import errno
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import test_kill as kill  # noqa: E402
from loop_device import Unavailable  # noqa: E402
from power_loss import Disk, mounted, unmount  # noqa: E402
from util import SANITIZED, left_out, skip  # noqa: E402

KEEPS = {"all": lambda rng: lambda: True, "none": lambda rng: lambda: False, "some": lambda rng: lambda: rng.random() < 0.5}


FORMATS = ("torch", "safetensors", "distcp", "tensorflow")


class Unsynced(kill.Checkpoint):
    """As frameworks write checkpoints: what a file lacks after a loss of power is found when it is read back."""

    def __init__(self, fmt):
        super().__init__(fmt)
        self.name = f"checkpoint {fmt} without fsync"

    def argv(self, folder, write=4, read=4):
        return [a for a in super().argv(folder, write, read) if a != "checkpoint.fsync=true"]

    def killed(self, folder, victim):
        if (folder / "out").exists():
            kill.result_is_honest(folder / "out", self.sealed)
        there = {n: d for n, d in kill.digests(folder / "saved").items() if not kill.temporary(n)}
        keys = {k: v for k, v in (a.split("=", 1) for a in map(str, self.argv(folder, 0, 4)) if "=" in a)}
        done = kill.call("run", "-n", 2, "default", "-q", "-o", folder / "look", *[f"{k}={v}" for k, v in keys.items()])
        kill.need((done.returncode == 0) == (there == self.saved), f"reading back ends with {done.returncode}: {done.stderr}")
        kill.need(done.returncode in (0, 1) and (done.returncode == 0 or kill.SENTENCE.search(done.stderr)), done.stderr)
        shutil.rmtree(folder / "look", ignore_errors=True)


def cases():
    return [
        kill.Generate("npz", files=40, dataset__record_length_bytes=20000),
        kill.Generate("tfrecord", files=30, dataset__record_length_bytes=20000, dataset__num_samples_per_file=2),
        kill.Generate("hdf5", files=20, dataset__record_length_bytes=20000),
        kill.Generate("csv", files=20, dataset__record_length_bytes=20000),
        kill.Generate("indexed_binary", files=20, dataset__record_length_bytes=20000),
        kill.Run(files=8, dataset__num_files_eval=2, train__epochs=1, checkpoint__fsync="true"),
        *[kill.Checkpoint(f) for f in FORMATS],
        *[Unsynced(f) for f in FORMATS],
        kill.Study("study run"),
    ]


SAMPLED = ("generate npz", "run", "checkpoint torch", "checkpoint distcp without fsync", "study run")


class Loss:
    def __init__(self, case, disk):
        self.case, self.disk = case, disk
        self.folder = disk.mount / "work"
        self.lost = 0  # the file system itself did not get over it

    def record(self):
        def work(mount):
            self.folder.mkdir()
            self.case.prepare(self.folder)
            os.sync()
            self.begun = self.disk._load()
            done = subprocess.run(self.case.command(self.folder), capture_output=True, text=True, env=kill.ENV,
                                  stdin=subprocess.DEVNULL, timeout=kill.HANGS_S)
            assert done.returncode == 0, f"{self.case.name} fails undisturbed: {done.stdout}{done.stderr}"
            self.case.learn(self.folder)
            shutil.rmtree(self.folder / "look", ignore_errors=True)
        self.disk.record(work)

    def moments(self, n, rng):
        """(cut, what is kept): the cut is behind a flush, before the next one, or when the command had ended."""
        flushes = [i for i, e in enumerate(self.disk.entries) if e[0] is None and i >= self.begun]
        ends = sorted({*flushes, self.disk.ended, *(i - 1 for i in flushes if i > self.begun)})
        every = [(c, k) for c in ends for k in KEEPS]
        if n and len(every) > n:
            every = sorted(rng.sample(every[:-3], max(0, n - 2))) + [(self.disk.ended, "none"), (self.disk.ended, "some")]
        return every

    def one(self, cut, keep, seed):
        case, folder = self.case, self.folder
        image = self.disk.after(cut, KEEPS[keep](random.Random(f"{seed} {cut}")))
        try:
            node = mounted(image, self.disk.mount, self.disk.kind)
        except subprocess.CalledProcessError:
            self.lost += 1
            return None
        try:
            kill.need(folder.exists(), "the folder is gone")
            before = case.killed(folder, "all")
            if cut >= self.disk.ended:
                self.all_there()
            done = subprocess.run(case.again(folder, "all"), capture_output=True, text=True, timeout=kill.HANGS_S,
                                  env=kill.ENV, stdin=subprocess.DEVNULL)
            kill.need(done.returncode == 0, f"the same command again: status {done.returncode}: {done.stdout[-300:]}{done.stderr}")
            case.finish(folder, before)
            left = kill.names(folder) ^ case.files
            kill.need(not left, f"names that an undisturbed command does not leave, or leaves: {sorted(left)[:6]}")
            return None
        except (kill.Wrong, KeyError, ValueError, OSError, subprocess.TimeoutExpired) as e:
            if os.strerror(errno.EUCLEAN) in str(e):
                self.lost += 1
                return None
            return f"{cut}:{keep}: {'' if isinstance(e, kill.Wrong) else type(e).__name__ + ' '}{e}".replace(str(folder), "@")
        finally:
            unmount(node, self.disk.mount)

    def all_there(self):
        """The command had ended with status 0: nothing that it wrote is lost."""
        lost = self.case.files - kill.names(self.folder)
        kill.need(not lost, f"the command had ended, and there is not: {sorted(lost)[:6]}")


def main():
    if SANITIZED:
        skip("moments are those of the program as it is used")
    parser = argparse.ArgumentParser()
    parser.add_argument("case", nargs="*")
    parser.add_argument("--fs", default="ext4")
    parser.add_argument("--cuts", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    args = parser.parse_args()
    wrong = tried = 0
    for kind in args.fs.split(","):
        for case in cases():
            if case.name not in (args.case or SAMPLED):
                continue
            begin = time.monotonic()
            try:
                with Disk(kind) as disk:
                    loss = Loss(case, disk)
                    loss.record()
                    moments = loss.moments(args.cuts, random.Random(args.seed))
                    if args.only:
                        cut, keep = args.only.split(":")
                        moments = [(int(cut), keep)]
                    found = [w for m in moments if (w := loss.one(*m, args.seed))]
            except Unavailable as e:
                left_out(f"{case.name} on {kind}: {e}")
                continue
            tried += len(moments)
            wrong += len(found)
            print(f"{case.name} on {kind}: {len(moments)} losses of {disk.ended - loss.begun} writes and flushes, {len(found)} findings"
                  f"{f', {loss.lost} times the file system itself was damaged' if loss.lost else ''}; {time.monotonic() - begin:.0f} s",
                  flush=True)
            for w in found:
                print(f"   {w}", flush=True)
    if not tried:
        skip("no disk whose writes can be logged")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
