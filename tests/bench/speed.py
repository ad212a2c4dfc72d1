"""Figures, not tests: microseconds of a sample that one worker reads from the page cache, beside a plain
C loop that makes exactly the same system calls, and beside DLIO.

    python3 tests/bench/speed.py [--dlio SCRIPT] build/stoker [NAME...]

Files lie in TMPDIR (default /dev/shm). The calls of one worker are recorded with strace, once for each row; the
plain loop (tests/tools/calls_tool.c, target calls_tool) repeats them, with buffers at the same distances, and does
nothing else. Then the program with reader.decode full and none, the plain loop and (--dlio) DLIO take turns, RUNS
times, each with PASSES passes. A turn's figure is its quickest pass; printed are medians of the turns, and medians of
the ratios within a turn. mincore proves before each turn that all files are in memory.
"""
import argparse
import ctypes
import json
import mmap
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
FULL, NONE = "full", "none"
RUNS = int(os.environ.get("RUNS", 5))
PASSES = int(os.environ.get("PASSES", 4))
BATCH = int(os.environ.get("BATCH", 4))
SMALL, MIDDLE, LARGE = 150528, 1 << 20, 16 << 20


def rows():
    """name, format, bytes of a sample, files, samples a file, more keys"""
    for fmt in ("npz", "npy", "hdf5", "tfrecord", "png", "jpeg", "indexed_binary", "mmap_indexed_binary"):
        few = fmt == "jpeg"
        yield f"{fmt} 150K", fmt, SMALL, 200 if few else 1000, 1, {}
        yield f"{fmt} 1M", fmt, MIDDLE, 30 if few else 160, 1, {}
        yield f"{fmt} 16M", fmt, LARGE, 4 if few else 12, 1, {}
        if fmt in ("hdf5", "tfrecord", "indexed_binary", "mmap_indexed_binary"):
            yield f"{fmt} 150Kx16", fmt, SMALL, 64, 16, {}
    yield "indexed_binary 96M", "indexed_binary", 96 << 20, 4, 1, {}
    yield "npz 96M", "npz", 96 << 20, 4, 1, {}
    yield "csv 16K", "csv", 16384, 400, 1, {}
    yield "csv 150K", "csv", SMALL, 40, 1, {}


class Row:
    def __init__(self, stoker, tool, tmp, name, fmt, length, files, per_file, keys):
        self.stoker, self.tool, self.tmp = stoker, tool, pathlib.Path(tmp)
        self.name, self.fmt, self.samples = name, fmt, files * per_file
        self.data = self.tmp / "data"
        self.length = length
        self.files, self.per_file = files, per_file
        self.keys = {"dataset.data_folder": self.data, "dataset.format": fmt, "dataset.num_files_train": files,
                     "dataset.num_files_eval": 0, "dataset.num_subfolders_train": 0,
                     "dataset.num_samples_per_file": per_file, "dataset.record_length_bytes": length,
                     "dataset.record_length_bytes_stdev": 0, "reader.batch_size": BATCH, "reader.read_threads": 1,
                     "reader.prefetch_size": 2, "reader.persistent_workers": "true", "dataset.verify_samples": 0,
                     "train.computation_time": 0, "workflow.evaluation": "false", **keys}

    def argv(self, verb, out=None, **more):
        keys = {**self.keys, **{k.replace("__", "."): v for k, v in more.items()}}
        return [self.stoker, verb, "default", "-q", *(["-o", str(out)] if out else []),
                *[f"{k}={v}" for k, v in keys.items()]]

    def generate(self):
        subprocess.run(self.argv("generate"), check=True, stdout=subprocess.DEVNULL)
        self.names = sorted(str(p) for p in (self.data / "train").iterdir())

    def ours(self, decode):
        """CPU and wall seconds of the quickest epoch but the first."""
        out = self.tmp / "out"
        subprocess.run(self.argv("run", out, workflow__generate_data="false", reader__decode=decode,
                                 train__epochs=PASSES + 1), check=True, stdout=subprocess.DEVNULL)
        epochs = json.loads((out / "result.json").read_text())["training"]["epochs"]
        shutil.rmtree(out)
        return tuple(min(e[part] for e in epochs[1:]) for part in ("cpu_s", "wall_s"))

    def calls(self, epochs):
        """Of the worker in so many epochs."""
        trace = self.tmp / "trace"
        trace.mkdir()
        subprocess.run(["strace", "-ff", "-qq", "-o", str(trace / "t"), "-s", "0", "-e", "raw=pread64,mmap", "-e",
                        "verbose=process_vm_readv", "-e", "abbrev=none", "-e",
                        "trace=openat,close,fcntl,newfstatat,statx,pread64,mmap,mremap,munmap,madvise,process_vm_readv",
                        *self.argv("run", self.tmp / "out", workflow__generate_data="false", train__epochs=epochs)],
                       check=True, stdout=subprocess.DEVNULL)
        texts = [p.read_text() for p in trace.iterdir()]
        best = max(texts, key=lambda t: t.count("\npread64(") + t.count("\nprocess_vm_readv("))
        calls = Calls(str(self.data))
        for line in best.splitlines():
            calls.line(line)
        shutil.rmtree(trace)
        shutil.rmtree(self.tmp / "out")
        return calls

    def record(self):
        """The calls of the second epoch, after those of the first, as lines of calls_tool; the bytes of the
        buffers."""
        first = len(self.calls(1).out)
        self.lines, self.arena = self.calls(2).finish(first)

    def plain(self):
        done = subprocess.run([self.tool, str(PASSES), str(self.arena)], input=self.lines, text=True, check=True,
                              capture_output=True)
        return tuple(min(float(line.split()[i]) for line in done.stdout.splitlines()) for i in range(2))


# DLIO writes its whole table of samples as text for each sample, at a level that is never logged; this leaves it out.
WITHOUT_TABLE = """
import dlio_benchmark.reader.reader_handler as h
from dlio_benchmark.main import main
class Table(dict):
    def __format__(self, how):
        return ""
    __str__ = __repr__ = lambda self: ""
begin = h.FormatReader.__init__
def init(self, *a):
    begin(self, *a)
    if self.global_index_map is not None:
        self.global_index_map = Table(self.global_index_map)
h.FormatReader.__init__ = init
main()
"""


class Dlio:
    """Real DLIO, started by a script that sets its paths and runs `python -m dlio_benchmark.main`."""
    def __init__(self, script):
        here = os.path.dirname(os.path.abspath(script))
        self.env = {**os.environ, "PYTHONPATH": f"{here}/hydra_src:{here}/pydftracer/python:{here}/dlio_benchmark",
                    "PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "", "RDMAV_FORK_SAFE": "1"}

    def epoch(self, row):
        """Wall seconds of the quickest epoch but the first."""
        out = row.tmp / "dlio"
        keys = {k: v for k, v in row.keys.items() if k not in ("dataset.verify_samples", "reader.persistent_workers")}
        keys.update({"output.folder": out, "train.epochs": 3, "workflow.generate_data": "False",
                     "workflow.evaluation": "False"})
        done = subprocess.run(["/usr/bin/python3", "-c", WITHOUT_TABLE, "workload=default", f"++hydra.run.dir={out}",
                               *[f"++workload.{k}={v}" for k, v in keys.items()]], env=self.env, capture_output=True,
                              text=True)
        if done.returncode:
            raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
        stats = json.loads((out / "0_per_epoch_stats.json").read_text())
        shutil.rmtree(out)
        return min(float(stats[e]["block1"]["duration"]) for e in ("2", "3"))


class Calls:
    """strace's lines of one thread, turned into lines of calls_tool."""
    FLAGS = {name: getattr(os, name) for name in dir(os) if name.startswith("O_")}

    def __init__(self, folder):
        self.folder, self.mapped, self.open, self.maps, self.out, self.at = folder, 0, {}, {}, [], []

    def flags(self, text):
        return sum(self.FLAGS[f] for f in text.split("|"))

    def map_of(self, address):
        """Where the map of this address begins, and its number."""
        return next(((at, number) for at, (number, n) in self.maps.items() if at <= address < at + n), None)

    def line(self, line):
        m = re.match(r"(\w+)\((.*)\)\s+= (-?\w+)", line)
        if not m:
            return
        name, args, result = m.groups()
        a = [x.strip() for x in args.split(",")]
        value = int(result, 0)
        if name == "openat" and self.folder in a[1] and value >= 0:
            path = a[1].strip('"')
            self.open[value] = path
            self.out.append(f"O {value} {self.flags(a[2])} {path}")
        elif name == "newfstatat" and self.folder in a[1] and "img_" in a[1]:
            self.out.append("S " + a[1].strip('"'))
        elif name == "munmap" and int(a[0], 0) in self.maps:
            self.out.append(f"U {self.maps.pop(int(a[0], 0))[0]}")
        elif name == "process_vm_readv":
            pieces = [(int(x, 0), int(y)) for x, y in re.findall(r"iov_base=(0x\w+), iov_len=(\d+)", args)]
            at, number = self.map_of(pieces[0][0])
            self.out.append(f"V {number} " + " ".join(f"{x - at} {y}" for x, y in pieces))
        elif name == "madvise" and self.map_of(int(a[0], 0)) and not value:
            at, number = self.map_of(int(a[0], 0))
            self.out.append(f"P {number} {int(a[0], 0) - at} {a[1]}")
        elif name == "mremap" and int(a[0], 0) in self.maps:
            # the old place is unmapped next; the tool does both
            self.maps[value] = self.maps.pop(int(a[0], 0))
            self.out.append(f"N {self.maps[value][0]}")
        elif a[0].isdigit() or a[0].startswith("0x"):
            fd = int(a[0], 0) if name != "mmap" else int(a[4], 0)
            if fd not in self.open:
                return
            if name == "pread64":
                self.at.append((int(a[1], 0), int(a[2], 0)))
                self.out.append(("R", fd, int(a[1], 0), int(a[2], 0), int(a[3], 0)))
            elif name == "mmap":
                self.mapped += 1
                self.maps[value] = (self.mapped, int(a[1], 0))
                self.out.append(f"M {fd} {self.mapped} {int(a[1], 0)}")
            else:
                self.out.append({"close": f"C {fd}", "fcntl": f"F {fd} {self.flags(a[-1]) if name == 'fcntl' else 0}",
                                 "newfstatat": f"T {fd}", "statx": f"X {fd}"}[name])
                if name == "close":
                    del self.open[fd]

    def finish(self, first):
        """Buffers less than 1 MiB apart keep their distance; all keep their place within 2 MiB."""
        place, end, arena = {}, None, 0
        for at, n in sorted(set(self.at)):
            if end is None or at > end + (1 << 20):
                begin, base = at & ~0x1fffff, arena
                end = at
            place[at] = base + at - begin
            end = max(end, at + n)
            arena = max(arena, (base + end - begin + 0x1fffff) & ~0x1fffff)
        lines = []
        for call in self.out:
            if isinstance(call, tuple):
                lines.append(f"R {call[1]} {place[call[2]]} {call[3]} {call[4]}")
            elif call:
                lines.append(call)
        lines.insert(first, "-")
        return "\n".join(lines) + "\n", max(arena, 1 << 21)


def prove_warm(names):
    """Reads what is not in memory; then all must be."""
    libc = ctypes.CDLL(None, use_errno=True)
    for name in names:
        size = os.path.getsize(name)
        if size == 0:
            continue
        with open(name, "rb") as f:
            for turn in range(2):
                with mmap.mmap(f.fileno(), size, mmap.MAP_PRIVATE) as m:
                    pages = (size + 4095) // 4096
                    there = (ctypes.c_ubyte * pages)()
                    at = ctypes.addressof(ctypes.c_char.from_buffer(m))
                    if libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(size), there) != 0:
                        raise SystemExit("mincore failed")
                    missing = sum(1 for x in there if not x & 1)
                if not missing:
                    break
                if turn:
                    raise SystemExit(f"{name}: {missing} pages are not in memory")
                f.seek(0)
                f.read()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("stoker")
    p.add_argument("names", nargs="*")
    p.add_argument("--dlio", metavar="SCRIPT")
    a = p.parse_args()
    dlio = Dlio(a.dlio) if a.dlio else None
    stoker = os.path.abspath(a.stoker)
    if not shutil.which("strace"):
        raise SystemExit("strace is not there: apt-get install strace")
    tool = os.path.join(os.environ.get("STOKER_TOOLS", os.path.join(os.path.dirname(stoker), "tests")), "calls_tool")
    print(f"{'':26} {'CPU us a sample':^43}   {'wall us a sample':^43}")
    print(f"{'':26} " + "   ".join(2 * [f"{'full':>8} {'none':>8} {'plain':>8} {'pl/none':>7} {'pl/full':>7}"]))
    for row in rows():
        if a.names and not any(row[0] == n or row[1] == n or row[0].split()[-1] == n for n in a.names):
            continue
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/dev/shm")) as tmp:
            r = Row(stoker, tool, tmp, *row)
            r.generate()
            r.record()
            turns = []
            for _ in range(RUNS):
                prove_warm(r.names)
                theirs = dlio.epoch(r) if dlio and r.fmt != "tfrecord" else 0
                turns.append((r.ours(FULL), r.ours(NONE), r.plain(), (theirs, theirs)))
            turns = [[part for side in t for part in side] for t in turns]
            us = [statistics.median(t[i] for t in turns) / r.samples * 1e6 for i in range(8)]
            def ratio(above, below):
                return statistics.median(t[above] / t[below] for t in turns)
            print(f"{r.name:26} {us[0]:8.1f} {us[2]:8.1f} {us[4]:8.1f} {ratio(4, 2):7.2f} {ratio(4, 0):7.2f}   "
                  f"{us[1]:8.1f} {us[3]:8.1f} {us[5]:8.1f} {ratio(5, 3):7.2f} {ratio(5, 1):7.2f}"
                  + (f"   {us[7]:8.1f} {ratio(7, 1):7.2f}" if us[7] else ""), flush=True)


if __name__ == "__main__":
    main()
