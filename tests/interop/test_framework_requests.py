"""What tf.data and torch's DataLoader ask of each file, under strace, beside our loaders with the same keys: the requests
of each file, the order of files, who reads them, and how far ahead of the steps. docs/compatibility.md says what differs.

    test_framework_requests.py [--only WORD] [--show] [--python PROGRAM]
"""
# tier: long
# mostly waits
# may take 900 s
# takes 150 s
import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from util import SANITIZED, STOKER, attempts, left_out, skip, stoker, tiny  # noqa: E402

CALLS = "openat,read,pread64,lseek,close"
LINE = re.compile(r"^(\d+) +(\d+\.\d+) (.*)$")
CALL = re.compile(r"^(\w+)\((.*)\)\s+= (-?\d+)(<[^>]*>)?")
STEP = 0.15


class Event(collections.namedtuple("Event", "at thread what file offset asked got")):
    pass


def trace(command, data, **more):
    """Requests to the files below `data`, in order, with the threads that make them."""
    with tempfile.NamedTemporaryFile("r") as log:
        done = subprocess.run(["strace", "-f", "-y", "-ttt", "-s", "0", "--seccomp-bpf", "-e", "trace=" + CALLS, "-o",
                               log.name, "--", *map(str, command)], capture_output=True, text=True, timeout=400, **more)
        text = log.read()
    if "ptrace" in done.stderr and not text:
        skip("strace cannot trace here: " + done.stderr.strip())
    assert done.returncode == 0, f"{command}\n{done.stderr[-3000:]}"
    return events_of(text, str(data))


def events_of(text, data):
    """Of each dataset below `data`."""
    begun, all_found, place = {}, {}, {}
    for line in text.splitlines():
        m = LINE.match(line)
        if not m:
            continue
        thread, at, call = int(m.group(1)), float(m.group(2)), m.group(3)
        if call.endswith("<unfinished ...>"):
            begun[thread] = at, call[:-len("<unfinished ...>")]
            continue
        if call.startswith("<... "):
            at, first = begun.pop(thread, (at, ""))
            call = first + call.split("resumed>", 1)[1]
        if data not in call:
            continue
        c = CALL.match(call)
        path = re.search(re.escape(data) + r"/([^/]+)/train/([^>\"]+)[>\"]", call)
        if not c or not path or int(c.group(3)) < 0:
            continue
        what, words, got = c.group(1), c.group(2), int(c.group(3))
        fd = (thread, words.split("<")[0])
        name = os.path.basename(path.group(2))
        found = all_found.setdefault(path.group(1), [])
        if what == "openat":
            place[thread, str(got)] = 0
            found.append(Event(at, thread, "open", name, 0, 0, 0))
        elif what == "lseek":
            place[fd] = got
        elif what == "read":
            asked = int(words.rsplit(", ", 1)[1])
            found.append(Event(at, thread, "read", name, place.get(fd, 0), asked, got))
            place[fd] = place.get(fd, 0) + got
        elif what == "pread64":
            asked, offset = (int(x) for x in words.rsplit(", ", 2)[1:])
            found.append(Event(at, thread, "read", name, offset, asked, got))
        elif what == "close":
            found.append(Event(at, thread, "close", name, 0, 0, 0))
    return all_found


def files_of(events):
    """Of each file the requests that its openings are followed by."""
    made = {}
    for e in events:
        if e.what != "close":
            made.setdefault(e.file, []).append(e[4:] if e.what == "read" else "open")
    return made


def in_bursts(events):
    """The files that are opened between two steps, sorted."""
    made, last = [], None
    for e in events:
        if e.what != "open":
            continue
        if last is None or e.at - last > STEP / 2:
            made.append([])
        made[-1].append(e.file)
        last = e.at
    return [sorted(m) for m in made]


def of_threads(events):
    """The files of each thread, in the order of their beginning."""
    made = {}
    for e in events:
        if e.what == "open":
            made.setdefault(e.thread, []).append(e.file)
    return sorted(made.values())


def ahead(events):
    """Files opened, and bytes asked for, at each step: what no step separates is one burst."""
    made, last = [], None
    for e in events:
        if e.what == "close" or e.what == "read" and e.got == 0:
            continue  # tf.data ends a file when a record more is wanted, we with its last one
        if last is None or e.at - last > STEP / 2:
            made.append([0, 0])
        made[-1][0] += e.what == "open"
        made[-1][1] += e.got
        last = e.at
    return [tuple(m) for m in made]


# ---- tf.data ----

def tf(name, keys, **task):
    return name, dict(dict(files=12, records=4, size=100000, batch=2), **task), keys


def reads(k, **more):
    return dict(reader__read_threads=k, **more)


def interleave(cycle, calls=None, block=1, **more):
    """The keys and the arguments of the same."""
    task = dict(cycle=cycle, block=block)
    if calls is not None:
        task.update(calls=calls)
    return (reads(cycle, reader__interleave="one" if calls is None else "calls", reader__block_length=block),
            dict(dict(interleave=task), **more))


# the cores that AUTOTUNE takes for one file of a cycle
AUTO_CYCLE = -(-len(os.sched_getaffinity(0)) // 3)

TF = [
    tf("one file after another", reads(0)),
    tf("prefetch 2", reads(0, reader__prefetch_size=2), prefetch=2),
    tf("num_parallel_reads 1", reads(1), reads=1),
    tf("num_parallel_reads 2", reads(2), reads=2),
    tf("num_parallel_reads 4", reads(4), reads=4, files=20),
    tf("num_parallel_reads AUTOTUNE", dict(interleave(AUTO_CYCLE, 1)[0]), reads="auto"),
    tf("buffer of 64 KiB", reads(2, reader__transfer_size=65536), reads=2, buffer=65536),
    tf("buffer of 4 MiB", reads(2, reader__transfer_size=4 << 20), reads=2, buffer=4 << 20),
    tf("without a buffer", reads(1, reader__transfer_size=0), reads=1, buffer=0),
    tf("records above the buffer", reads(2), reads=2, size=700000, records=3),
    tf("a record a file", reads(4), reads=4, records=1, files=40),
    tf("shuffle 8", reads(2, reader__sample_shuffle="seed", reader__shuffle_size=8), reads=2, shuffle=8, seed=123),
    tf("prefetch 4 and map 2", reads(2, reader__prefetch_size=4, reader__computation_threads=2), reads=2, prefetch=4, map=2),
    tf("map AUTOTUNE and prefetch AUTOTUNE", reads(2, reader__prefetch_size=-1, reader__computation_threads=-1), reads=2,
       map="auto", prefetch="auto"),
    tf("prefetch AUTOTUNE", reads(2, reader__prefetch_size=-1), reads=2, prefetch="auto"),
]
for label, (keys, task) in {
        "interleave 2 in one thread": interleave(2),
        "interleave 3 in one thread in blocks of 2": interleave(3, block=2),
        "interleave 2 with 2 calls": interleave(2, 2),
        "interleave 4 with AUTOTUNE": interleave(4, "auto", files=20),
        "interleave 2 with 2 calls in blocks of 3": interleave(2, 2, 3, records=8, size=40000, buffer=65536)}.items():
    TF.append(tf(label, dict(keys, **({"reader__transfer_size": task["buffer"]} if "buffer" in task else {})), **task))


def torch(name, workers, keys=None, **task):
    persistent = task.get("persistent", False)
    task = dict(dict(format="npz", files=24, records=1, size=30000, batch=2, workers=workers), **task)
    return name, task, dict(dict(reader__read_threads=workers, reader__prefetch_size=task.get("prefetch", 2) * workers,
                                 reader__persistent_workers=str(persistent).lower(), train__epochs=task.get("epochs", 1)),
                            **(keys or {}))


SHUFFLED = dict(reader__sample_shuffle="seed", train__seed=7)
TORCH = [
    torch("no workers", 0),
    torch("no workers and npy", 0, format="npy"),
    torch("1 worker", 1),
    torch("2 workers", 2),
    torch("4 workers", 4),
    torch("2 workers and prefetch_factor 1", 2, prefetch=1),
    torch("2 workers and prefetch_factor 4", 2, prefetch=4),
    torch("2 workers and jpeg", 2, format="jpeg"),
    torch("2 workers that live on", 2, persistent=True, epochs=2, files=12),
    torch("2 workers for each epoch", 2, epochs=2, files=12),
    torch("2 workers and spawn", 2, dict(reader__multiprocessing_context="spawn"), context="spawn", files=16),
    torch("2 workers and forkserver", 2, dict(reader__multiprocessing_context="forkserver"), context="forkserver", files=16),
    torch("2 workers and a batch_sampler", 2, sampler="batch"),
    torch("2 workers and shuffle", 2, dict(reader__order="random", **SHUFFLED), sampler="random", seed=7),
    torch("2 workers and DistributedSampler", 2, dict(reader__order="distributed", **SHUFFLED), sampler="distributed", seed=7,
          ranks=1, rank=0),
    torch("2 workers and what lies ready first", 2, dict(reader__in_order="false"), in_order=False),
    torch("2 workers of an IterableDataset", 2, sampler="iterable"),
]


# What differs, and docs/compatibility.md says why.
KNOWN = {
    "num_parallel_reads AUTOTUNE": "threads", "interleave 2 with 2 calls": "threads", "interleave 4 with AUTOTUNE": "threads",
    "interleave 2 with 2 calls in blocks of 3": "threads", "2 workers of an IterableDataset": "files of a worker",
}


def ours(task, keys, data, out, **more):
    every = dict(fmt=task.get("format", "tfrecord"), files=task["files"], framework=task["framework"],
                 reader__data_loader=task["framework"], dataset__num_samples_per_file=task["records"],
                 dataset__record_length_bytes=task["size"], reader__batch_size=task["batch"], reader__prefetch_size=0,
                 reader__computation_threads=0, train__computation_time=STEP, storage__page_cache_files=0,
                 dataset__verify_samples=0, reader__sample_shuffle="off")
    return tiny(data, out, **{**every, **keys, **more})


def versions_of(python):
    """The frameworks that this Python can import, and the keys for its libraries."""
    script = ("import sys, numpy; print(sys.version_info[1], *numpy.__version__.split('.')[:2]); "
              "import importlib.util as u; print(*(n for n in ('tensorflow', 'torch', 'PIL') if u.find_spec(n)))")
    done = subprocess.run([python, "-c", script], capture_output=True, text=True)
    if done.returncode:
        return [], {}
    numbers, names = done.stdout.splitlines()
    minor, *numpy = map(int, numbers.split())
    return names.split(), dict(reader__python="py314" if minor >= 14 else "py311",
                               reader__numpy="np23" if numpy >= [2, 3] else "np124")


def takes_in_order(python):
    script = "import inspect, torch.utils.data as d; print('in_order' in inspect.signature(d.DataLoader).parameters)"
    return subprocess.run([python, "-c", script], capture_output=True, text=True).stdout.strip() == "True"


def window(task, events):
    """Files opened when the rank has its first batch and as much lies ready as may."""
    most = task["batch"] * (1 + task["workers"] * task.get("prefetch", 2) if task["workers"] else 1)
    return next((n for n in itertools.accumulate(n for n, _ in ahead(events)) if n >= most), 0)


def differences(task, real, mine):
    found = [files_of(real) != files_of(mine) and "requests of a file"]
    if task["framework"] == "pytorch":
        # which worker is quicker decides what it gets when the order is free
        if task.get("in_order", True):
            found += [of_threads(real) != of_threads(mine) and "files of a worker"]
        # on a busy machine one batch more may have been asked for before a pause shows; a batch more ready of each
        # worker would be two
        found += [abs(window(task, real) - window(task, mine)) > task["batch"] and "read ahead"]
    else:
        # what several threads open at once has no order of its own
        found += [in_bursts(real) != in_bursts(mine) and "order of files",
                  len(of_threads(real)) != len(of_threads(mine)) and "threads",
                  ahead(real) != ahead(mine) and "read ahead"]
    return [f for f in found if f]


def show(real, mine):
    a, b = files_of(real), files_of(mine)
    for f in [f for f in sorted(set(a) | set(b)) if a.get(f) != b.get(f)][:1]:
        print("   real", f, a.get(f), "\n   ours", f, b.get(f))
    for word, what in (("order", in_bursts), ("threads", of_threads), ("ahead", ahead)):
        if what(real) != what(mine):
            print(f"   {word} real", what(real), f"\n   {word} ours", what(mine))


class Rows:
    """What real programs did for each row, made again where another attempt asks for it."""

    def __init__(self, tmp, python, framework, keys):
        self.tmp, self.python, self.framework, self.keys = tmp, python, framework, keys
        self.real = {}

    def traced(self, rows):
        tasks = [dict(t, framework=self.framework, data=str(self.tmp / n), step=STEP) for n, t, k in rows]
        self.real.update(trace([self.python, HERE / "framework_loop.py", json.dumps(tasks)], self.tmp))

    def once(self, row, n):
        name, task, keys = row
        task = dict(task, framework=self.framework)
        if n:
            self.traced([row])
        mine = trace([STOKER, "run", *ours(task, dict(self.keys, **keys), self.tmp / name, self.tmp / f"out of {name}",
                                           workflow__generate_data="false")],
                     self.tmp, env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0")).get(name, [])
        found = differences(task, self.real.get(name, []), mine)
        return [f for f in found if f != KNOWN.get(name)] == [], (found, self.real.get(name, []), mine)

    def compare(self, rows, verbose):
        for name, task, keys in rows:
            stoker("generate", *ours(dict(task, framework=self.framework), dict(self.keys, **keys), self.tmp / name, None))
        self.traced(rows)
        wrong = []
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            firsts = list(pool.map(lambda row: self.once(row, 0), rows))
        for row, first in zip(rows, firsts):
            right, (found, real, mine) = attempts(row[0], lambda n: self.once(row, n), first)
            print(f"   {row[0]:42} {len(real):4} requests: {', '.join(found) or 'equal'}", flush=True)
            if found and verbose or not right:
                show(real, mine)
            wrong += [] if right else [row[0]]
        return wrong


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--only", default="")
    a.add_argument("--python", default=os.environ.get("STOKER_PYTHON", "/usr/bin/python3"))
    a.add_argument("--show", action="store_true")
    a = a.parse_args()
    if SANITIZED or not shutil.which("strace"):
        skip("strace is not installed, or a sanitizer is in the way")
    there, keys = versions_of(a.python)
    wrong = []
    for framework, module, rows in (("tensorflow", "tensorflow", TF), ("pytorch", "torch", TORCH)):
        rows = [r for r in rows if re.search(a.only, r[0])]
        late = [r for r in rows if "in_order" in r[1]]
        if module == "torch" and module in there and late and not takes_in_order(a.python):
            left_out(f"{len(late)} loader of pytorch: DataLoader has no in_order before torch 2.6")
            rows = [r for r in rows if r not in late]
        if module not in there:
            left_out(f"{len(rows)} loaders of {framework}: {a.python} has none (STOKER_PYTHON names another Python)")
            continue
        with tempfile.TemporaryDirectory() as tmp:
            wrong += Rows(pathlib.Path(tmp), a.python, framework, keys).compare(rows, a.show) if rows else []
    assert not wrong, f"they differ from what the frameworks do: {wrong}"


if __name__ == "__main__":
    main()
