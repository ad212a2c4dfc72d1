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
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import test_kill as kill  # noqa: E402
from loop_device import Unavailable  # noqa: E402
from power_loss import Disk, mounted, unmount  # noqa: E402
from util import SANITIZED, SOURCE, left_out, skip, tiny  # noqa: E402

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


# It writes back what it wrote so far, and with it what was recorded, in between.
RECORDED = """
import os, sys
for i in range(8): open(f'{sys.argv[1]}/part{i}', 'wb').write(bytes(20000))
for epoch in range(6):
    if epoch % 2 == 1: os.sync()
    if os.fork() == 0:
        for i in range(8):
            with open(f'{sys.argv[1]}/part{i}', 'rb', 0) as f:
                while f.read(100): pass
        os._exit(0)
    os.wait()
"""
LACKS = re.compile(r"has no end|no log of a job|damaged|cut|removed|missing|no recording|is no log|cannot be read|not that of a recording")


class Recording(kill.Case):
    """What a program does while the power is lost, and afterwards in another folder."""

    def argv(self, folder, name="recording"):
        return ["record", "-o", folder / name, "--", sys.executable, "-c", RECORDED, folder / "data"]

    def prepare(self, folder):
        (folder / "data").mkdir()

    def again(self, folder, victim):
        return [kill.PROGRAM, *map(str, self.argv(folder, "again"))]

    @staticmethod
    def told(folder):
        done = kill.call("explain", folder, "--json", "-v")
        if done.returncode:
            return done.returncode, done.stderr, None
        job = json.loads(done.stdout)
        events = [e.pop("requests", None) for e in job.get("files", [])]
        return 0, " ".join(job.get("notes", [])), (events, job.get("requests"), len(job.get("processes", [])))

    def learn(self, folder):
        status, notes, self.whole = self.told(folder / "recording")
        kill.need(status == 0 and not LACKS.search(notes), notes)
        self.files = {n for n in kill.names(folder) if not n.startswith("recording/")}

    def killed(self, folder, victim):
        there = folder / "recording"
        self.is_whole, self.said = False, "no recording"
        if there.exists():
            status, said, what = self.told(there)
            self.said = said
            self.is_whole = status == 0 and not LACKS.search(said)
            kill.need(status in (0, 1, 2), f"explain: status {status}")
            kill.need(not self.is_whole or what == self.whole, f"said to be whole, and is not: {what}, not {self.whole}")
            kill.need(self.is_whole or LACKS.search(said), f"explain says nothing of what is missing: {said}")

    def lost(self, folder):
        return [] if self.is_whole else [self.said]

    def finish(self, folder, before):
        status, said, what = self.told(folder / "again")
        kill.need(status == 0 and what == self.whole and not LACKS.search(said), said)
        for name in ("recording", "again"):
            shutil.rmtree(folder / name, ignore_errors=True)


class Written(kill.Case):
    """Files whose names were given, over those that had them: the old ones or the new ones."""

    def __init__(self, name, argv, outputs, prepare=None, mib=0):
        super().__init__(name)
        self.mib = mib  # of the disk; 0: as all others have
        self._argv, self.outputs, self._prepare = argv, outputs, prepare

    def prepare(self, folder):
        for o in self.outputs:
            (folder / o).write_text("old\n")
        if self._prepare:
            self._prepare(folder)

    def argv(self, folder):
        return self._argv(folder)

    def is_one(self, path):
        """Whether it is a file of this command to its end."""
        text = path.read_text()
        if path.suffix == ".json":
            return isinstance(kill.json_of(path), dict)
        return text.endswith({".html": "</html>\n", ".svg": "</svg>\n"}.get(path.suffix, "\n")) and \
            abs(len(text) - self.length[path.name]) <= self.length[path.name] / 4

    def learn(self, folder):
        super().learn(folder)
        self.length = {o: len((folder / o).read_text()) for o in self.outputs}

    def killed(self, folder, victim):
        self.old = [o for o in self.outputs if not (folder / o).exists() or (folder / o).read_text() == "old\n"]
        for o in self.outputs:
            kill.need((folder / o).exists(), f"{o} is gone")
            kill.need(o in self.old or self.is_one(folder / o), f"{o} is neither the old one nor a new one")

    def lost(self, folder):
        return self.old

    def finish(self, folder, before):
        for o in self.outputs:
            kill.need((folder / o).read_text() != "old\n" and self.is_one(folder / o), f"{o} is not whole")


class Searched(Written):
    """How many runs a search makes is up to the times it measures: of those that are there each has the same files."""

    def __init__(self):
        super().__init__("capacity", searched, [])

    @staticmethod
    def named(names):
        return {re.sub(r"^search/\d+/\d+/", "search/N/K/", n) for n in names}

    def killed(self, folder, victim):
        super().killed(folder, victim)
        for answer in folder.glob("search/capacity.json"):
            kill.need(isinstance(kill.json_of(answer), dict), "the answer of the search is not whole")

    def lost(self, folder):
        return self.named(self.files) - self.named(kill.names(folder))


LOG = SOURCE / "examples/job.strace.gz"
POINT = ["--point", "hosts=1,accelerators=8,samples_per_s=160,au=93.1", "--model", "unet3d_h100", "-n", "8"]


def searched(folder):
    return ["capacity", *tiny(folder / "data", None, storage__store="memory", files=24, reader__batch_size=1), "--max", 2,
            "--time", 1, "-o", folder / "search"]


def written():
    return [
        Written("explain -o", lambda f: ["explain", LOG, "-o", f / "job.yaml"], ["job.yaml"]),
        Written("explain page", lambda f: ["explain", LOG, "-o", f / "job.html"], ["job.html"]),
        Written("plan", lambda f: ["plan", *POINT, "--json", f / "plan.json", "-o", f / "plan.html"], ["plan.json", "plan.html"]),
        Written("replay", lambda f: ["replay", LOG, "--sparse", "--no-think", "--data", f / "image", "-o", f / "compared.json"],
                ["compared.json"]),
        Written("calibrate", lambda f: ["calibrate", "--only", "step", "-q", "-o", f / "costs.yaml"], ["costs.yaml"]),
        Written("survey", mib=400, argv=lambda f: ["survey", f, "--only", "resnet50_h100", "--time", 5, "-q", "-o", f / "survey.html"],
                outputs=["survey.html"]),
        Searched(),
        Written("report", lambda f: ["report", SOURCE / "tests/data/dlio-output", "-o", f / "page.html", "--csv", f / "runs.csv"],
                ["page.html", "runs.csv"]),
    ]


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
        Recording("record"),
        *written(),
    ]


SAMPLED = ("generate npz", "run", "checkpoint torch", "checkpoint distcp without fsync", "study run", "record", "plan")


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
            named = getattr(case, "named", set)
            left = named(kill.names(folder)) ^ named(case.files)
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
        lost = self.case.lost(self.folder) if hasattr(self.case, "lost") else self.case.files - kill.names(self.folder)
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
                with Disk(kind, getattr(case, "mib", 0)) as disk:
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
