"""What this Python's own code costs, beside the requests to the storage: `stoker calibrate` runs it in a child.

Reports are lines of JSON in the file argv[1]. argv[2] is a folder for files to load, argv[3] the rows to measure, with
commas between them, argv[4] the framework. Times are of the processor, unless a comment says otherwise.
"""
import builtins
import datetime
import functools
import gc
import importlib
import importlib.util
import io
import json
import logging
import math
import mmap
import os
import struct
import subprocess
import sys
import time
import zlib

OUT = open(sys.argv[1], "a", encoding="utf-8")
FOLDER = sys.argv[2]
ROWS = sys.argv[3].split(",")
FRAMEWORK = sys.argv[4]
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
KIB, MIB = 1 << 10, 1 << 20
cpu = time.thread_time


def tell(**facts):
    OUT.write(json.dumps(facts) + "\n")
    OUT.flush()


def library(name):
    try:
        return importlib.import_module(name)
    except Exception as why:  # what is installed may be broken in any way
        return " ".join(f"{type(why).__name__}: {why}".split())[:200]


def version(module):
    return getattr(module, "__version__", "?")


LIBRARIES = {"numpy": "numpy", "h5py": "h5py", "pillow": "PIL.Image", "pandas": "pandas",
             **({"tensorflow": "tensorflow"} if FRAMEWORK == "tensorflow" else {"torch": "torch"})}
found = {name: library(module) for name, module in LIBRARIES.items()}
missing = {name: why for name, why in found.items() if isinstance(why, str)}
np, h5py, pd = (found[k] for k in ("numpy", "h5py", "pandas"))
torch, tf = found.get("torch"), found.get("tensorflow")
Image = found["pillow"]


def needs(row):
    """The libraries of a row."""
    if row in ("sample", "step", "step_end", "block", "loop_end", "import_dlio"):
        return []
    if row in ("index", "keep"):
        return ["numpy"]
    if FRAMEWORK == "tensorflow" and (not row.startswith("load_") or row == "load_tfrecord"):
        return ["tensorflow"]
    if not row.startswith("load_"):
        return ["numpy", "torch"]
    return ["numpy"] + {"load_hdf5": ["h5py"], "load_png": ["pillow"], "load_jpeg": ["pillow"],
                        "load_csv": ["pandas"]}.get(row, [])


# ---- laws from times ----

def quantile(values, q):
    v = sorted(values)
    x = q * (len(v) - 1)
    i = int(x)
    return v[i] + (v[min(i + 1, len(v) - 1)] - v[i]) * (x - i)


MEAN = None  # in place of a quantile
INTERRUPTED = 4  # medians; beyond it other things ran


def centre(values, q):
    """The quantile, or the mean: what an interpreter does now and then, such as collecting garbage, belongs to it."""
    if q is not MEAN:
        return quantile(values, q)
    most = INTERRUPTED * quantile(values, 0.5)
    kept = [v for v in values if v <= most]
    return sum(kept) / len(kept)


def solve(a, b):
    """A small system by elimination; None where it has no one solution."""
    n = len(b)
    m = [row[:] + [b[i]] for i, row in enumerate(a)]
    for i in range(n):
        p = max(range(i, n), key=lambda k: abs(m[k][i]))
        if abs(m[p][i]) < 1e-12:
            return None
        m[i], m[p] = m[p], m[i]
        for k in range(n):
            if k != i:
                f = m[k][i] / m[i][i]
                m[k] = [x - f * y for x, y in zip(m[k], m[i])]
    return [m[i][n] / m[i][i] for i in range(n)]


ELAPSED = 0.25  # of elapsed times the lower quartile, which other processes disturb less than the median
ANSWERS = 0.1  # the same of waits for another process's answer, which come on top of processor time
PAUSE = 0.012  # after such a wait the caches hold other things
EACH_WAIT = 0.012  # of waits within a load, so long a one has the part 1 - 1/e of the longest ones' effect


def law(points, terms, middle=0.5, weight=1.0):
    """Least squares of relative errors of the medians, no part below 0. points: (count, samples, bytes, times). A
    smaller weight: of what is no straight line, so that the large times count for more."""
    columns = {"fixed": 0, "per_sample": 1, "per_byte": 2}
    kept = [(p[:3], centre(p[3], middle)) for p in points if p[3]]
    kept = [(x, t) for x, t in kept if t > 0]
    if not kept:
        return {t: 0.0 for t in terms}, 0.0
    best, best_error = {}, math.inf
    for mask in range(1, 1 << len(terms)):
        used = [t for i, t in enumerate(terms) if mask >> i & 1]
        scale = [max(x[columns[t]] for x, _ in kept) or 1.0 for t in used]
        rows = [[x[columns[t]] / s / m ** weight for t, s in zip(used, scale)] for x, m in kept]
        aims = [m ** (1 - weight) for _, m in kept]
        a = [[sum(r[i] * r[k] for r in rows) for k in range(len(used))] for i in range(len(used))]
        c = solve(a, [sum(r[i] * y for r, y in zip(rows, aims)) for i in range(len(used))])
        if c is None or min(c) < 0:
            continue
        error = sum((sum(r[i] * c[i] for i in range(len(used))) - y) ** 2 for r, y in zip(rows, aims))
        if error < best_error * (1 - 1e-9):
            best, best_error = {t: v / s for t, v, s in zip(used, c, scale)}, error
    parts = {t: best.get(t, 0.0) for t in terms}
    ratios = []
    for count, samples, size, times in points:
        whole = sum(parts[t] * (count, samples, size)[columns[t]] for t in terms)
        if whole > 0:
            ratios += [t / whole for t in times]
    spread = (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / 2 if ratios else 0.0
    return parts, spread


done_rows = set()


def added_by_wait(p, w, middle):
    """To the quantile, or to the lower quartile: few waits are measured, and what happens now and then is in few of
    them."""
    q = 0.25 if middle is MEAN else middle
    return quantile(w[3], q) - quantile(p[3], q)


def after_wait(points, waited, middle=0.5):
    """What a wait adds: the median over the points."""
    added = [added_by_wait(p, w, middle) for p, w in zip(points, waited) if p[3] and w[3]]
    return max(quantile(added, 0.5), 0.0) if added else 0.0


def by_size(points, waited, parts, middle=0.5):
    """The law at the sizes that were measured, less what goes by samples: [bytes, seconds, after a wait]. Sizes that
    are nearly equal count as one."""
    at = []
    for p, w in sorted(zip(points, waited or points), key=lambda x: x[0][2]):
        if not p[3] or not w[3]:
            continue
        rest = max(centre(p[3], middle) - parts.get("per_sample", 0) * p[1], 0)
        more = max(added_by_wait(p, w, middle), 0)
        if at and p[2] < 1.1 * at[-1][0]:
            at[-1] += p[2], rest, more
        else:
            at.append((p[2], rest, more))
    return [[sum(x[i::3]) / (len(x) // 3) for i in range(3)] for x in at]


def spread_about(points, middle=0.5):
    """Half of what lies between the quartiles of single times, as a fraction of the median of their size."""
    ratios = [t / centre(p[3], middle) for p in points if p[3] and centre(p[3], middle) > 0 for t in p[3]]
    return (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / 2 if ratios else 0.0


def report(row, points, terms, waited=None, middle=0.5, weight=1.0, inside=None, alone=None, more=None):
    """inside: time of a further sample of a file that is open. alone: the same without workers. more: other parts of the
    law."""
    if row not in ROWS:
        return
    parts, spread = law(points, terms, middle, weight)
    at = by_size(points, waited, parts, middle) if "per_byte" in terms else []
    if inside is not None:
        parts["per_sample"] = min(inside, parts["fixed"])
        parts["fixed"] -= parts["per_sample"]
        at = [[b, max(t - parts["per_sample"], 0), w] for b, t, w in at]
    if alone:
        second = by_size(alone, None, parts, middle)
        if [b for b, *_ in second] == [b for b, *_ in at]:
            at = [[*x, y[1]] for x, y in zip(at, second)]
    if waited:
        parts["after_wait"] = after_wait(points, waited, middle)
    parts.update(more or {})
    if len(at) > 1:
        spread = spread_about(points, middle)
    done_rows.add(row)
    tell(row=row, law=parts, spread=spread, law_points=at, points=medians(points, middle),
         waited=medians(waited or [], middle))


def medians(points, middle=0.5):
    return [[p[1], p[2], centre(p[3], middle)] for p in points if p[3]]


# ---- a machine that is slower at times ----

SLOWER = 1.3  # than the quickest: a processor that shares its core, or other programs
PATIENCE = 60.0  # s, of all that is measured again
speed = {"best": math.inf, "spent": 0.0, "kept": 0}


def reference():
    """The time of a fixed piece of interpreter's work."""
    data = {str(i): [i, float(i)] for i in range(400)}
    times = []
    for i in range(5):
        a = cpu()
        json.loads(json.dumps(data))
        times.append(cpu() - a)
    speed["best"] = min(speed["best"], *times)
    return quantile(times, 0.5)


def steadily(work):
    """What work() returns where the machine was as quick before and behind it as it ever was; else, when there is no more
    patience, what it returned when it was least slow."""
    best = None
    while True:
        begin, before = time.monotonic(), reference()
        x = work()
        slow = max(before, reference())
        if best is None or slow < best[0]:
            best = slow, x
        if best[0] <= SLOWER * speed["best"]:
            return best[1]
        if speed["spent"] > PATIENCE:
            speed["kept"] += 1
            return best[1]
        speed["spent"] += time.monotonic() - begin


# ---- what DLIO imports ----

def python_says(*words):
    """The last line that another Python prints."""
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


# what DLIO imports beside torch and numpy
DLIO_USES = ("hydra", "omegaconf", "pandas", "mpi4py", "psutil", "dftracer.python")

BEGINS = '''
"""A forked worker of DLIO imports its reader, two modules of which look at the stack; each look goes through all modules
that are loaded, for each frame of an import. Prints what that takes, and the imports of h5py and of Pillow."""
import importlib, json, os, sys, time

def get(name):
    try:
        importlib.import_module(name)
    except Exception:
        pass

def module(name, text):
    with open(os.path.join(sys.argv[1], name + ".py"), "w") as f:
        f.write(text + "import inspect\\ninspect.stack()\\n")

def deep(work, frames):
    return deep(work, frames - 1) if frames else work()

def begun(library):
    r, w = os.pipe()
    if os.fork() == 0:
        times = []
        for name in ("reader_worker", library):
            a = time.process_time()
            deep(lambda: get(name), 30)
            times.append(time.process_time() - a)
        os.write(w, json.dumps(times).encode())
        os._exit(0)
    os.wait()
    return json.loads(os.read(r, 1000))

for name in sys.argv[2:]:
    get(name)
sys.path.insert(0, sys.argv[1])
for who in ("rank", "worker"):
    module("handler_" + who, "")
    module("reader_" + who, f"import handler_{who}\\n")
get("reader_rank")
hdf5, image = ([begun(name) for i in range(4)] for name in ("h5py", "PIL.Image"))
print(json.dumps([min(t[0] for t in hdf5 + image), min(t[1] for t in hdf5), min(t[1] for t in image)]))
'''


def dlio_modules():
    return ("dlio_benchmark.main",) if importlib.util.find_spec("dlio_benchmark") else DLIO_USES


@functools.lru_cache
def begin_of_dlio():
    """Of a new worker of DLIO: its reader, and its imports of h5py and of Pillow."""
    script = os.path.join(FOLDER, "begins.py")
    with open(script, "w", encoding="utf-8") as f:
        f.write(BEGINS)
    return json.loads(python_says(script, FOLDER, "numpy", "torch", *dlio_modules()))


# ---- loading a sample ----

def reads(path, buffer):
    """The calls that move the bytes, into memory that is there already."""
    fd = os.open(path, os.O_RDONLY)
    os.fstat(fd)
    at = 0
    while True:
        n = os.readv(fd, [buffer[at:at + 256 * KIB]])
        at += n
        if n == 0 or at >= len(buffer):
            break
    os.close(fd)


def side(size):
    return max(1, math.isqrt(size))


def make_npz(path, size):
    np.savez(path, x=np.random.randint(255, size=(side(size), side(size), 1), dtype=np.uint8), y=[0])


def make_npy(path, size):
    np.save(path, np.random.randint(255, size=(side(size), side(size), 1), dtype=np.uint8))


def make_hdf5(path, size):
    with h5py.File(path, "w") as f:
        f.create_dataset("records_0", data=np.random.randint(255, size=(1, side(size), side(size)), dtype=np.uint8))


def make_png(path, size):
    """As datasets are generated: rows without filters, stored."""
    n, rows = side(size), os.urandom(side(size) ** 2)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    raw = b"".join(b"\0" + rows[i * n:(i + 1) * n] for i in range(n))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", n, n, 8, 0, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(raw, 0)) + chunk(b"IEND", b""))


def make_image(path, size):
    Image.fromarray(np.random.randint(255, size=(side(size), side(size)), dtype=np.uint8)).save(path)


def make_csv(path, size):
    pd.DataFrame(np.random.randint(255, size=(1, size), dtype=np.uint8)).to_csv(path, header=False, index=False)


def make_raw(path, size):
    with open(path, "wb") as f:
        f.write(os.urandom(size))


def load_npz(path, size):
    return np.load(path, allow_pickle=True)["x"][..., 0]


def load_npy(path, size):
    return np.load(path)[..., 0]


def load_hdf5(path, size):
    f = h5py.File(path, "r")
    x = f["records_0"][0]
    f.close()
    return x


def load_image(path, size):
    return np.asarray(Image.open(path))


def load_csv(path, size):
    return pd.read_csv(path, compression="infer", header=None).to_numpy()[0]


def load_raw(path, size):
    f = open(path, "rb")
    f.seek(0)
    x = np.empty(size, dtype=np.uint8)
    f.readinto(x)
    f.close()
    return x


mapped = {}


def load_mapped(path, size):
    if path not in mapped:
        mapped[path] = np.frombuffer(memoryview(np.memmap(path, mode="r", order="C")), dtype=np.uint8)
    return mapped[path][0:size]


SIZES = [4 * KIB, 32 * KIB, 150000, 512 * KIB, MIB, 4 * MIB]
FORMATS = {  # make, load, extension, sizes, whether the calls that move the bytes are part of what was timed
    "npz": (make_npz, load_npz, ".npz", SIZES, True), "npy": (make_npy, load_npy, ".npy", SIZES, True),
    "hdf5": (make_hdf5, load_hdf5, ".hdf5", SIZES, True),
    "png": (make_png, load_image, ".png", SIZES, True), "jpeg": (make_image, load_image, ".jpeg", SIZES, True),
    "csv": (make_csv, load_csv, ".csv", [KIB, 4 * KIB, 16 * KIB], True),
    "indexed_binary": (make_raw, load_raw, ".bin", SIZES, True),
    "mmap_indexed_binary": (make_raw, load_mapped, ".bin", SIZES, False)}


def in_child(work):
    """What work() returns, from a process of its own, which has memory of its own."""
    return steadily(lambda: from_child(work))


def from_child(work):
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(r)
            with os.fdopen(w, "w") as f:
                json.dump(work(), f)
            status = 0
        finally:
            os._exit(status)
    os.close(w)
    with os.fdopen(r) as f:
        text = f.read()
    if os.waitpid(pid, 0)[1] != 0:
        raise RuntimeError("a process of the measurement failed")
    return json.loads(text)


FILES = 12


def time_loads(load, paths, size, with_calls):
    """Loads of several files in turn, less the same calls into memory that is there already: one after another, after
    pauses, and what the first of all took longer. Both are timed in one process: where its memory lies matters."""
    buffer = memoryview(bytearray(os.path.getsize(paths[0])))
    warm, cold, calls, cold_calls = [], [], [], []
    turn = [0]

    def timed(work, times):
        turn[0] += 1
        path = paths[turn[0] % FILES]
        a = cpu()
        x = work(path)
        del x
        times.append(cpu() - a)

    def one(path):
        return load(path, size)

    def moved(path):
        return reads(path, buffer)

    for path in paths:
        reads(path, buffer)
    first = []
    timed(one, first)
    for path in paths[:2]:
        load(path, size)
    end = time.monotonic() + 0.25
    while len(cold) < 6 or (time.monotonic() < end and len(cold) < 15):
        for i in range(2):
            timed(one, [])
        for i in range(12):
            timed(one, warm)
            if with_calls:
                timed(moved, calls)
        for i in range(3):
            time.sleep(PAUSE)
            timed(one, cold)
            if with_calls:
                time.sleep(PAUSE)
                timed(moved, cold_calls)
    less, cold_less = (quantile(x, 0.5) if x else 0.0 for x in (calls, cold_calls))
    return ([max(t - less, 0.0) for t in warm], [max(t - cold_less, 0.0) for t in cold],
            max(first[0] - quantile(warm, 0.5), 0.0))


AGREE = 0.15  # between two measurements of the same
ROUNDS = 5


def repeated(what, once):
    """Of measurements in processes of their own the quicker of two that agree: where memory lies makes some slow as a whole,
    and other programs only make them longer. Says so where no two agree."""
    rounds = []
    for i in range(ROUNDS):
        rounds = sorted([*rounds, once()], key=lambda x: quantile(x[0], 0.5))
        middles = [quantile(x[0], 0.5) for x in rounds]
        for k in range(len(rounds) - 1):
            if middles[k + 1] - middles[k] <= max(AGREE * middles[k], 2e-6):
                return rounds[k]
    tell(unsteady=what, least=middles[0], most=middles[-1])
    return rounds[len(rounds) // 2]


def time_alone(load, paths, size, with_calls):
    """Loads between which batches of four are made in the same process, as without workers."""
    from torch.utils.data._utils.collate import default_collate

    buffer = memoryview(bytearray(os.path.getsize(paths[0])))
    sample = np.zeros(size, dtype=np.uint8)
    loads, calls, batch = [], [], None
    end = time.monotonic() + 0.25
    while len(loads) < 20 or (time.monotonic() < end and len(loads) < 60):
        for i in range(4):
            path = paths[len(loads) % FILES]
            a = cpu()
            x = load(path, size)
            del x
            loads.append(cpu() - a)
        a = cpu()
        reads(path, buffer)
        calls.append(cpu() - a)
        batch = default_collate([sample] * 4)
    del batch
    moved = quantile(calls, 0.5) if with_calls else 0.0
    return [max(t - moved, 0.0) for t in loads[8:]]


def time_open_samples(path):
    """Samples of a file that stays open."""
    times = []
    with h5py.File(path, "r") as f:
        for i in range(60):
            a = cpu()
            x = f["records_0"][0]
            del x
            times.append(cpu() - a)
    return times[10:]


DATA = 20000  # bytes; a request for so many is one for the data of a sample


class Slow(io.FileIO):
    """A file of which requests for its bytes wait, outside of the processor time that is told."""
    pause = most = waits = 0
    spent = 0.0
    ahead = last = None  # the code before the first request for data; the time, and what was spent, behind the last one

    def readinto(self, b):
        begin = cpu()
        if len(b) >= DATA and Slow.ahead is None:
            Slow.ahead = begin - Slow.begin - Slow.spent
        n = super().readinto(b)
        if n >= DATA and Slow.waits < Slow.most:
            Slow.waits += 1
            time.sleep(Slow.pause)
        end = cpu()
        Slow.spent += end - begin
        if n >= DATA:
            Slow.last = end, Slow.spent
        return n


def time_within(load, paths, size):
    """What a wait within a load adds where the thread has waited before the load: several in one load, and none, in
    turn. And the code of a load before its first request for data and behind the last one. Nothing where the library
    passes Python's files by."""
    ordinary, hdf5 = builtins.open, None if "h5py" in missing else h5py.File

    def slow_open(path, mode="r", *rest, **more):
        known = isinstance(path, str) and path in paths and mode == "rb"
        return io.BufferedReader(Slow(path)) if known else ordinary(path, mode, *rest, **more)

    def once(i, pause, before=PAUSE):
        Slow.pause, Slow.most, Slow.waits, Slow.spent = pause, 4 if pause else 0, 0, 0.0
        Slow.ahead = Slow.last = None
        time.sleep(before)
        a = Slow.begin = cpu()
        x = load(paths[i % FILES], size)
        del x
        end = cpu()
        if Slow.last and not before:
            ahead.append(Slow.ahead)
            behind.append(end - Slow.last[0] - (Slow.spent - Slow.last[1]))
        return end - a - Slow.spent

    plain, waited, waits, ahead, behind = [], [], [], [], []
    builtins.open = slow_open
    if hdf5:
        h5py.File = lambda path, mode: hdf5(Slow(path), mode)
    try:
        for i in range(18):
            plain.append(once(2 * i, 0))
            waited.append(once(2 * i + 1, PAUSE))
            waits.append(Slow.waits)
        for i in range(24):
            once(i, 0, 0)
    finally:
        builtins.open = ordinary
        if hdf5:
            h5py.File = hdf5
    n = quantile(waits, 0.5)
    if not n:
        return {}
    more = quantile(waited[4:], 0.25) - quantile(plain[4:], 0.25)  # other programs make both longer
    return {"after_each_wait": max(more, 0.0) / n / -math.expm1(-PAUSE / EACH_WAIT),
            "before_data": max(quantile(ahead[4:], 0.5), 0.0), "after_data": max(quantile(behind[4:], 0.5), 0.0)}


def measure_load(name, make, load, ending, sizes, with_calls):
    points, waited, inside, alone, first, within = [], [], [], [], [], {}
    for size in sizes:
        paths = [os.path.join(FOLDER, f"{name}_{i}{ending}") for i in range(FILES)]
        from_child(lambda: [make(path, size) for path in paths] and None)
        values = side(size) ** 2 if name not in ("csv", "indexed_binary", "mmap_indexed_binary") else size
        if name == "csv":
            values = os.path.getsize(paths[0])
        warm, cold, extra = repeated(f"load_{name} of {values} bytes",
                                     lambda: in_child(lambda: time_loads(load, paths, size, with_calls)))
        points.append((1, 1, values, warm))
        waited.append((1, 1, values, cold))
        first.append(extra)
        if torch and "torch" not in missing:
            alone.append((1, 1, values, in_child(lambda: time_alone(load, paths, size, with_calls))))
        if name == "hdf5":
            inside.append((1, 1, values, in_child(lambda: time_open_samples(paths[0]))))
        if with_calls and size == MIB:
            within = in_child(lambda: time_within(load, paths, size))
        for path in paths:
            os.unlink(path)
    more = law(inside, ["per_sample", "per_byte"])[0]["per_sample"] if inside else None
    begin = {"hdf5": 1, "png": 2, "jpeg": 2}.get(name)
    if begin and torch and "torch" not in missing:
        within["import"] = begin_of_dlio()[begin]
    report("load_" + name, points, ["fixed", "per_byte"], waited, MEAN, weight=0.5, inside=more, alone=alone,
           more={"first": quantile(first, 0.5), **within})


def measure_keep():
    """Memory of samples: of arrays that are kept, which is fresh, and of such that are thrown away."""
    if "keep" not in ROWS or "numpy" in missing:
        return

    def loads(path, kept):
        times, x = [], []
        for i in range(48):
            a = cpu()
            x.append(np.load(path))
            if len(x) > kept:
                x.clear()  # a batch
            times.append(cpu() - a)
        return times[16:]

    tell(doing="keep")
    points = []
    for size in (MIB, 4 * MIB):  # smaller ones often find memory that is there
        path = os.path.join(FOLDER, "keep.npy")
        from_child(lambda: make_npy(path, size))
        thrown = in_child(lambda: loads(path, 0))
        kept = in_child(lambda: loads(path, 8))
        least = quantile(thrown, 0.5)
        points.append((1, 1, side(size) ** 2, [max(t - least, 0.0) for t in kept]))
    report("keep", points, ["per_byte"])


def measure_loads():
    for name, facts in FORMATS.items():
        row = "load_" + name
        if row in ROWS and not any(n in missing for n in needs(row)):
            tell(doing=row)
            measure_load(name, *facts)


# ---- batches, by the real loader ----

SLOTS = 4  # of a batch: process time at the begin of its collate, time of its collate, time of its samples
EVENTS = 4096


class Notes:
    """Numbers that workers leave for the rank."""

    def __init__(self):
        self.at = mmap.mmap(-1, 8 * (1 + EVENTS * SLOTS))

    def clear(self):
        self.at[:8] = struct.pack("q", 0)

    def add(self, *values):
        n = struct.unpack("q", self.at[:8])[0]
        if n < EVENTS:
            self.at[8 + n * 8 * SLOTS:8 + n * 8 * SLOTS + 8 * len(values)] = struct.pack(f"{len(values)}d", *values)
            self.at[:8] = struct.pack("q", n + 1)

    def all(self):
        n = struct.unpack("q", self.at[:8])[0]
        return [struct.unpack(f"{SLOTS}d", self.at[8 + i * 8 * SLOTS:8 + (i + 1) * 8 * SLOTS]) for i in range(n)]


def loader_parts():
    from torch.utils.data import DataLoader, Dataset
    from torch.utils.data._utils.collate import default_collate

    class Same(Dataset):
        """Each sample is the same array, so that all that costs is the loader."""

        def __init__(self, size, count, every=0):
            self.x = np.random.randint(255, size=size, dtype=np.uint8)
            self.count, self.every, self.took = count, every, 0.0
            kept = io.BytesIO()
            np.savez(kept, x=self.x[:4 * KIB])
            self.file = kept.getvalue()

        def __len__(self):
            return self.count

        def __getitem__(self, i):
            if self.every and i % self.every == 0:  # once a batch, so that the interpreter is awake as after a load
                a = cpu()
                np.load(io.BytesIO(self.file))["x"]
                self.took += cpu() - a
            return self.x

    class Collate:
        def __init__(self, notes, dataset):
            self.notes, self.dataset = notes, dataset

        def __call__(self, batch):
            p, t = time.process_time(), cpu()
            out = default_collate(batch)
            self.notes.add(p, cpu() - t, self.dataset.took)
            self.dataset.took = 0.0
            return out

    return DataLoader, Same, Collate


def make_loader(DataLoader, dataset, batch, workers, **more):
    if workers:
        more = {"prefetch_factor": 2, "multiprocessing_context": "fork", **more}
    return DataLoader(dataset, batch_size=batch, num_workers=workers, drop_last=True, **more)


GRID = [(1, 4 * KIB), (16, 4 * KIB), (128, 4 * KIB), (1, 150000), (7, 150000), (1, MIB), (4, MIB), (16, MIB)]


def time_batches(batch, size, pause, steps):
    """Times of collate, pack and hand_over (as take). Without a pause the worker is never idle, and batches taken are not ready."""
    DataLoader, Same, Collate = loader_parts()
    notes = Notes()
    ahead = 4
    dataset = Same(size, batch * steps, every=batch)
    loader = make_loader(DataLoader, dataset, batch, 1, collate_fn=Collate(notes, dataset), prefetch_factor=ahead)
    taken, held, it = [], [None], iter(loader)
    for i in range(steps - ahead - 1):
        time.sleep(pause)
        take(it, held, taken)
    del it
    held.clear()
    events = notes.all()
    collate = [e[1] for e in events]
    pack = [max(b[0] - a[0] - a[1] - b[2], 0.0) for a, b in zip(events, events[1:])]
    return collate, pack, taken


def time_first():
    """What the first batch of a new worker takes longer, in a process that has had none: collate, pack, hand_over."""
    parts = in_child(lambda: time_batches(4, 256 * KIB, PAUSE, 16))
    parts[2] = [c for c, _ in parts[2]]
    # what packs a batch begins threads, which go on while the next ones are made
    return [sum(max(t - quantile(times[3:], 0.5), 0.0) for t in times[:n]) for times, n in zip(parts, (1, 2, 1))]


def take(it, held, taken):
    """The next batch in place of the one that is held: what it takes of processor time and beside it, into a list."""
    a, c = time.perf_counter(), cpu()
    held[0] = next(it)
    c = cpu() - c
    taken.append((c, time.perf_counter() - a - c))


def with_answers(points):
    """Processor times of taking batches, and what the rank waits each time for the worker's thread that passes
    descriptors: it takes as long for all sizes, and other programs only make it longer."""
    least = [max(quantile([rest for _, rest in p[3]], ANSWERS), 0.0) for p in points if p[3]]
    answer = quantile(least, 0.25) if least else 0.0
    return [(*p[:3], [c + answer for c, _ in p[3]]) for p in points]


def time_ready(batch, size, pause):
    """Times of taking batches of which all lie ready, at once."""
    DataLoader, Same, _ = loader_parts()
    taken = []
    loader = make_loader(DataLoader, Same(size, batch * 8), batch, 1, prefetch_factor=8, persistent_workers=True)
    for repeat in range(5):
        held, it = [None], iter(loader)
        time.sleep(0.03 + 8 * pause)
        for i in range(8):
            take(it, held, taken if i >= 2 else [])
    del it, held
    return taken


def twice(work):
    """Of two measurements the times of each part that were less: other programs only make them longer."""
    def middle(times):
        return quantile([t[0] if isinstance(t, tuple) else t for t in times[6:]], 0.5)

    return [min(pair, key=middle) for pair in zip(steadily(work), steadily(work))]


def measure_batches():
    rows = ("collate", "pack", "hand_over")
    if not any(r in ROWS for r in rows) or missing.keys() & {"numpy", "torch"}:
        return
    tell(doing="collate, pack, hand_over")
    warm = {r: [] for r in rows}
    cold = {r: [] for r in rows}
    for batch, size in GRID:
        pause = 0.0004 + 1e-9 * batch * size + 5e-6 * batch
        busy = twice(lambda: time_batches(batch, size, 0, 40)[:2])
        idle = twice(lambda: time_batches(batch, size, PAUSE + 2 * pause, 24))
        ready = twice(lambda: [[*[None] * 6, *time_ready(batch, size, 2 * pause)]]) if "hand_over" in ROWS else [[]]
        for row, w, c, skip in zip(rows, (*busy, *ready), idle, (3, 3, 6)):
            warm[row].append((1, batch, batch * size, w[skip:]))
            cold[row].append((1, batch, batch * size, c[skip:]))
    first = {row: {"first": quantile(times, 0.5)} for row, times in zip(rows, zip(*[time_first() for _ in range(5)]))}
    report("collate", warm["collate"], ["fixed", "per_sample", "per_byte"], cold["collate"], more=first["collate"])
    report("pack", warm["pack"], ["fixed", "per_byte"], cold["pack"], more=first["pack"])
    report("hand_over", with_answers(warm["hand_over"]), ["fixed", "per_byte"], with_answers(cold["hand_over"]), ELAPSED,
           more=first["hand_over"])


def measure_inline():
    if "inline" not in ROWS or missing.keys() & {"numpy", "torch"}:
        return
    DataLoader, Same, _ = loader_parts()
    tell(doing="inline")
    points = {0: [], PAUSE: []}

    class Loads(Same):
        """Loads a file for each sample, whose memory lies between that of the batches; its time does not count."""

        def __getitem__(self, i):
            a = cpu()
            y = np.load(os.path.join(FOLDER, f"inline_{self.x.size}.npy"))
            del y
            self.took += cpu() - a
            return self.x

    def time_inline(batch, size, pause, steps):
        """Means of three: memory is fresh for some batches and not for others, in turn."""
        times, x, dataset = [], None, Loads(size, batch * steps)
        it = iter(make_loader(DataLoader, dataset, batch, 0))
        for i in range(steps):
            time.sleep(pause)
            dataset.took = 0.0
            a = cpu()
            x = next(it)
            times.append(cpu() - a - dataset.took)
        del x
        return [sum(times[i:i + 3]) / 3 for i in range(3, steps - 2, 3)]

    for size in {size for _, size in GRID}:
        np.save(os.path.join(FOLDER, f"inline_{size}.npy"), np.zeros(size, dtype=np.uint8))
    for batch, size in GRID:
        for pause, kept in points.items():
            kept.append((1, batch, batch * size,
                         in_child(lambda: time_inline(batch, size, pause, 18 if pause else 42))))
    report("inline", points[0], ["fixed", "per_sample", "per_byte"], points[PAUSE], weight=0.5)


def measure_workers():
    rows = ("start_worker", "begin_worker", "resume_worker", "end_worker")
    if not any(r in ROWS for r in rows) or missing.keys() & {"numpy", "torch"}:
        return
    DataLoader, Same, _ = loader_parts()
    tell(doing="start, begin, resume and end of workers")

    class First(Same):
        """Notes the processor time of the worker at its first sample."""

        def __init__(self, notes):
            super().__init__(64, 64)
            self.notes, self.noted = notes, False

        def __getitem__(self, i):
            if not self.noted:
                self.noted = True
                self.notes.add(time.process_time())
            return self.x

    points = {r: [] for r in rows}
    for workers in (1, 2, 4):
        start, begin, resume, end = [], [], [], []
        for repeat in range(6):
            notes = Notes()
            loader = make_loader(DataLoader, First(notes), 1, workers, persistent_workers=True)
            a = time.perf_counter()
            it = iter(loader)  # one worker after another
            start.append((time.perf_counter() - a) / workers)
            for x in it:
                pass
            for epoch in range(3):
                time.sleep(0.01)
                a = time.perf_counter()
                again = iter(loader)  # every worker answers
                resume.append((time.perf_counter() - a) / workers)
                for x in again:
                    pass
            begin += [e[0] for e in notes.all()]
            time.sleep(0.02)
            a = time.perf_counter()
            loader._iterator = None
            del it, again, x
            end.append((time.perf_counter() - a) / workers)
        for row, times in zip(rows, (start, begin, resume, end)):
            points[row].append((1, 1, 0, times))
    for row in rows:
        report(row, points[row], ["fixed"], middle=0.5 if row == "begin_worker" else ELAPSED)


STARTS = '''
import json, sys, time
import numpy, torch
from torch.utils.data import DataLoader, Dataset

class Begun(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, i):
        return time.process_time()

if __name__ == "__main__":
    told = []
    for i in range(2):
        loader = DataLoader(Begun(), batch_size=1, num_workers=1, multiprocessing_context=sys.argv[1])
        a = time.perf_counter()
        it = iter(loader)
        told.append([time.perf_counter() - a, float(next(it))])
    print(json.dumps(told))
'''
def measure_start_methods():
    methods = [m for m in ("spawn", "forkserver") if {"start_" + m, "begin_" + m} & set(ROWS)]
    if methods and not missing.keys() & {"numpy", "torch"}:
        tell(doing="workers that are not forked")
        script = os.path.join(FOLDER, "starts.py")
        with open(script, "w", encoding="utf-8") as f:
            f.write(STARTS)
    else:
        methods = []
    for method in methods:
        (first, begun), (each, again) = json.loads(python_says(script, method))
        # the first one starts the server, too
        report("start_" + method, [(1, 1, 0, [min(first, each) if method == "spawn" else each])], ["fixed"],
               more={"first": max(first - each, 0.0)} if method == "forkserver" else None)
        report("begin_" + method, [(1, 1, 0, [min(begun, again)])], ["fixed"])  # other programs only make it longer
    if "begin_dlio" in ROWS:
        report("begin_dlio", [(1, 1, 0, [begin_of_dlio()[0]])], ["fixed"])  # other programs only make it longer
    if "import_dlio" in ROWS:
        code = ("import importlib, sys, time\n"
                "def get(name):\n    try:\n        importlib.import_module(name)\n    except Exception:\n        pass\n"
                "get('numpy'), get('torch')\na = time.process_time()\nfor name in sys.argv[1:]:\n    get(name)\n"
                "print(time.process_time() - a)")
        report("import_dlio", [(1, 1, 0, [float(python_says("-c", code, *dlio_modules()))])], ["fixed"])


def measure_pin():
    if "pin" not in ROWS or missing.keys() & {"numpy", "torch"}:
        return
    if not torch.cuda.is_available():
        tell(absent="pin", why="torch sees no GPU")
        return
    tell(doing="pin")
    points, waited = [], []
    for size in (4 * KIB, 64 * KIB, MIB, 4 * MIB, 16 * MIB):
        x = torch.zeros(size, dtype=torch.uint8)
        times = []
        for i in range(40):
            time.sleep(PAUSE if i >= 24 else 0)
            a = cpu()
            y = x.pin_memory()
            times.append(cpu() - a)
            del y
        points.append((1, 1, size, times[4:24]))
        waited.append((1, 1, size, times[24:]))
    report("pin", points, ["fixed", "per_byte"], waited)


# ---- tf.data ----


def least(row, work, rounds=3):
    """Of several measurements (lists of times) the one of the least median: other programs only make them longer. Says
    so where no second one is near it."""
    made = sorted((steadily(work) for _ in range(rounds)), key=lambda t: quantile(t, 0.5))
    two = [quantile(t, 0.5) for t in made[:2]]
    if row in ROWS and two[1] - two[0] > max(AGREE * two[0], 20e-6):
        unsteady.setdefault(row, two)
    return made[0]


unsteady = {}


def plain(data):
    """Without what tf.data does in the background."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.inject_prefetch = False
    return data.with_options(options)


def time_nexts(data, steps, pause=0.0, clock=time.process_time, skip=3):
    """Of taking an element in place of the one before it."""
    times, held, it = [], [None], iter(plain(data))
    for i in range(steps):
        time.sleep(pause)
        a = clock()
        held[0] = next(it)
        times.append(clock() - a)
    return times[skip:]


def serialized(size):
    return tf.train.Example(features=tf.train.Features(feature={"image": tf.train.Feature(
        bytes_list=tf.train.BytesList(value=[os.urandom(size)]))})).SerializeToString()


def parse(x):
    shape = {"image": tf.io.FixedLenFeature([], tf.string)}
    return tf.io.decode_raw(tf.io.parse_example(x, shape)["image"], tf.uint8)


def record_files(count, records, size):
    paths = [os.path.join(FOLDER, f"{records}_{size}_{i}.tfrecord") for i in range(count)]
    for path in paths:
        with tf.io.TFRecordWriter(path) as f:
            for _ in range(records):
                f.write(serialized(size))
        reads(path, memoryview(bytearray(os.path.getsize(path))))
    return paths


def woven(files):
    return files.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=4)


def time_whole(data):
    a = time.process_time()
    for _ in plain(data.batch(4)):
        pass
    return time.process_time() - a


def time_iterators(data, repeats=10):
    """Elapsed times until the first element, and of the end."""
    begin, end = [], []
    for _ in range(repeats):
        a = time.perf_counter()
        it = iter(data)
        x = next(it)
        begin.append(time.perf_counter() - a)
        time.sleep(0.005)
        a = time.perf_counter()
        for x in it:
            pass
        del it, x
        end.append(time.perf_counter() - a)
    return begin, end


def measure_iterators():
    file = tf.data.Dataset.from_tensor_slices(record_files(1, 1, 4 * KIB))
    data = tf.data.TFRecordDataset(file, num_parallel_reads=2).batch(1)
    more = {"iterator_map": data.map(parse, num_parallel_calls=2), "iterator_interleave": woven(file).batch(1)}
    begin, end = time_iterators(data.prefetch(2), 12)
    first = max(begin[0] - quantile(begin, ELAPSED), 0.0)
    begin = least("iterator", lambda: time_iterators(data.prefetch(2))[0])
    bare = quantile(begin, ELAPSED)
    report("iterator", [(1, 1, 0, begin)], ["fixed"], middle=ELAPSED, more={"first": first})
    for row, piped in more.items():
        times = least(row, lambda piped=piped: time_iterators(piped.prefetch(2))[0])
        report(row, [(1, 1, 0, [max(t - bare, 0.0) for t in times])], ["fixed"], middle=ELAPSED)
    report("iterator_end", [(1, 1, 0, end)], ["fixed"], middle=ELAPSED)


def measure_takes():
    """What the rank spends on a batch that lies ready: seconds by bytes, for the other rows, too."""
    points, waited = [], []
    for size in SIZES:
        data = tf.data.Dataset.from_tensors([serialized(size)] * 4).repeat().map(parse).prefetch(16)

        def ready(pause):
            times, held, it = [], [None], iter(plain(data))
            for repeat in range(3):
                held[0] = next(it)
                time.sleep(0.03 + 64 * size * 1e-9)
                for i in range(8):
                    time.sleep(pause)
                    a = cpu()
                    held[0] = next(it)
                    times.append(cpu() - a)
            return times[4:]

        points.append((1, 4, 4 * size, least("hand_over", lambda: ready(0))))
        waited.append((1, 4, 4 * size, least("hand_over", lambda: ready(PAUSE))))
    report("hand_over", points, ["fixed", "per_byte"], waited, ELAPSED)
    return {p[2] / 4: [quantile(x[3], 0.5) for x in (p, w)] for p, w in zip(points, waited)}


def measure_records(takes):
    """Reading by one thread, whoever it is. Returns what a file costs beside its records."""
    records, points, waited = 8, [], []
    many, few = (tf.data.Dataset.from_tensor_slices(record_files(n, 48 // n, 4 * KIB)) for n in (48, 8))

    def each_file(row, data):
        """Of the same records in more files."""
        times = [least(row, lambda: [time_whole(data(files)) for _ in range(3)]) for files in (many, few)]
        return max(quantile(times[0], 0.5) - quantile(times[1], 0.5), 0.0) / 40

    file_s = each_file("load_tfrecord", tf.data.TFRecordDataset)
    woven_s = each_file("interleave", woven)
    for size in SIZES:
        paths = record_files(max(2, min(12, 96 * MIB // (records * size))), records, size)
        buffer = memoryview(bytearray(os.path.getsize(paths[0])))
        moved = quantile([timed(lambda: reads(paths[i % len(paths)], buffer)) for i in range(24)], 0.5) / records
        data = tf.data.TFRecordDataset(paths).repeat()
        warm, cold = takes[size]
        each = [max(t - warm, 0.0) / 4 for t in least("load_tfrecord", lambda: time_nexts(data.batch(4), 30))]
        after = [max(t - cold, 0.0) for t in least("load_tfrecord", lambda: time_nexts(data.batch(1), 20, PAUSE))]
        before = quantile([max(t - warm, 0.0) for t in time_nexts(data.batch(1), 30)], 0.5)
        own = [max(t - file_s / records - moved, 0.0) for t in each]
        more = max(quantile(after, 0.5) - before, 0.0)
        points.append((1, 1, size, [t + file_s for t in own]))
        waited.append((1, 1, size, [t + file_s + more for t in own]))
        for path in paths:
            os.unlink(path)
    inside = quantile(points[0][3], 0.5) - file_s
    report("load_tfrecord", points, ["fixed", "per_byte"], waited, inside=inside,
           more={"fixed": file_s, "per_sample": inside})
    report("interleave", [(1, 1, 0, [max(woven_s - file_s, 0.0)])], ["fixed"])


def timed(work):
    a = cpu()
    work()
    return cpu() - a


def measure_parse():
    points = []
    for batch, size in GRID:
        data = tf.data.Dataset.from_tensors([serialized(size)] * batch).repeat()
        whole = least("parse", lambda: time_nexts(data.map(parse, num_parallel_calls=1), 24))
        bare = quantile(time_nexts(data, 24), 0.5)
        points.append((1, batch, batch * size, [max(t - bare, 0.0) for t in whole]))
    report("parse", points, ["fixed", "per_sample", "per_byte"], weight=0.5)


def measure_tensorflow():
    iterators = {"iterator", "iterator_map", "iterator_interleave", "iterator_end"}
    records = {"interleave", "load_tfrecord", "hand_over"}
    if FRAMEWORK != "tensorflow" or "tensorflow" in missing or not (iterators | records | {"parse"}) & set(ROWS):
        return
    tell(doing="tf.data: records, batches, parsing, iterators")
    if iterators & set(ROWS):
        measure_iterators()
    if records & set(ROWS):
        measure_records(measure_takes())
    if "parse" in ROWS:
        measure_parse()
    for row, two in unsteady.items():
        tell(unsteady=row, least=min(two), most=max(two))


# ---- DLIO's own code ----

class Traced:
    """A tracer that is off, around functions and loops."""
    on = False

    def update(self, step=None, args=None):
        if self.on:
            args["step"] = step
        return self

    def log(self, function):
        @functools.wraps(function)
        def wrapper(*args, **more):
            if self.on:
                self.update()
            x = function(*args, **more)
            if self.on:
                self.update()
            return x
        return wrapper

    def iter(self, values):
        for v in values:
            if self.on:
                self.update()
            yield v
            if self.on:
                self.update()


tracer = Traced()
LOG = logging.getLogger("calibrate")


def now():
    return datetime.datetime.now().strftime("%Y-%m-%dT%H:%M:%S.%f")


class Loop:
    """A training loop with what DLIO's does around the computation: a line of a log that is formatted and not written (DLIO
    writes warnings), lists of times, a tracer that is off. Its parts, from one wait to the next, lie in `times`."""

    def __init__(self, pause):
        self.pause, self.times = pause, {"step": [], "step_end": [], "block": [], "loop_end": []}
        self.kept = {part: {} for part in ("load", "proc", "compute")}
        self.begin = self.begun = self.at = 0.0

    def add(self, part):
        self.times[part].append(cpu() - self.at)

    def rest(self):
        time.sleep(self.pause)
        self.at = cpu()

    def loaded(self, step, block):
        took, key = time.time() - self.begin, f"block{block}"
        if key in self.kept["load"]:
            self.kept["load"][key].append(took)
        else:
            self.kept["load"][key] = [took]
        LOG.info(f"{now()} Rank {0} step {step}: loaded {4} samples in {took:.4f} s")

    def processed(self, step, block):
        end = time.time()
        took, key = end - self.begin, f"block{block}"
        if key in self.kept["proc"]:
            self.kept["proc"][key].append(took)
            self.kept["compute"][key].append(end - self.begun)
        LOG.info(f"{now()} Rank {0} step {step} processed {4} samples in {took:.4f}s)")

    @tracer.log
    def trace(self, name, step, r):
        return name, step, r

    def wait(self, config):
        seconds = 0.0
        if isinstance(config, dict) and len(config) > 0 and "type" not in config and "mean" in config:
            seconds = config["mean"]
        if abs(seconds) > 0.0:
            self.add("step")
            self.rest()

    @tracer.log
    def compute(self, batch, config):
        return self.wait(config)

    def batches(self, steps):
        """The rank takes a batch, whose time is not the loop's; that it asks once more is."""
        values = iter(range(steps))
        if torch and "torch" not in missing:
            values = iter(torch.utils.data.DataLoader(range(steps), batch_size=None))
        while True:
            if self.kept["proc"]["block1"]:
                self.add("step_end")
            self.rest()
            try:
                x = next(values)
            except StopIteration:
                return
            json.loads(json.dumps({str(k): [k] for k in range(60)}))
            self.at = cpu()
            yield x

    def fetched(self, steps):
        step = 1
        for batch in tracer.iter(self.batches(steps)):
            tracer.update(step=step)
            tracer.update(step=step)
            step += 1
            yield batch
        tracer.update(step=step)

    def run(self, steps):
        config, step = {"mean": self.pause or 1e-6}, 1
        LOG.warning(f"{now()} Starting epoch {1}: {steps} steps expected")
        self.at = cpu()
        self.begin_block(1)
        self.begin = time.time()
        fetched = self.fetched(steps)
        self.add("block")
        for batch in fetched:
            if step > steps:
                break
            self.loaded(step, 1)
            if isinstance(config, dict) and len(config) > 0:
                self.trace("Train", step, 1)
            self.begun = time.time()
            self.compute(batch, config)
            self.processed(step, 1)
            os.getppid()
            step += 1
            self.begin = time.time()
        self.add("loop_end")
        return self.times

    def begin_block(self, block):
        """The line of the log is written, to a file and to the terminal."""
        for part in self.kept.values():
            part[f"block{block}"] = []
        LOG.warning(f"{now()} Starting block {block}")


def measure_dlio():
    rows = ("sample", "index", "step", "step_end", "block", "loop_end")
    if not any(r in ROWS for r in rows):
        return
    tell(doing="sample, index, step")
    LOG.setLevel(logging.WARNING)
    LOG.propagate = False
    for name in ("log", "terminal"):
        out = logging.FileHandler(os.path.join(FOLDER, name))
        out.setFormatter(logging.Formatter("[%(levelname)s] %(message)s"))
        LOG.addHandler(out)

    def each(n, work):
        times = []
        for i in range(n):
            a = cpu()
            work(i)
            times.append(cpu() - a)
        return times[n // 10:]

    def warm(row, terms, works):
        """works: (samples, a function)."""
        report(row, [(1, n, 0, steadily(lambda work=work: each(60, work))) for n, work in works], terms)

    def formats(n):
        index = {np.int64(i): (f"{FOLDER}/data/train/img_{i:04d}_of_{n}.npz", np.int64(0)) for i in range(n)}
        return lambda i: f"{index}"

    if "index" in ROWS and "numpy" not in missing:
        warm("index", ["per_sample"], [(n, formats(n)) for n in (16, 128, 1024, 4096)])

    def sample(i):
        for text in ("reading", "read_index", "sample_index"):
            LOG.debug(f"{now()} Rank {i} {text} {i} sample of {FOLDER}")
        math.ceil((i + 1) / 4)
        isinstance(i, dict)
        time.sleep(0)

    warm("sample", ["per_sample"], [(1, sample)])
    hot = steadily(lambda: Loop(0).run(60))
    cold = [steadily(lambda: Loop(PAUSE).run(12)) for _ in range(4)]
    for row in ("step", "step_end"):
        report(row, [(1, 1, 0, hot[row][6:])], ["fixed"], [(1, 1, 0, [t for c in cold for t in c[row][2:]])])
    for row in ("block", "loop_end"):
        report(row, [(1, 1, 0, [c[row][0] for c in cold])], ["fixed"])


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return "unknown"


def main():
    tell(about={"python": ".".join(map(str, sys.version_info[:3])), "processor": processor(),
                "version": "" if {"torch", "tensorflow"} & missing.keys() else version(torch or tf).split("+")[0],
                "libraries": ", ".join(f"{n} {version(found[n] if n != 'pillow' else importlib.import_module('PIL'))}"
                                       for n in ("numpy", "h5py", "pillow", "pandas") if n not in missing)})
    for name, why in missing.items():
        rows = [r for r in ROWS if name in needs(r)]
        if rows:
            tell(missing=name, why=why, rows=rows)
    gc.collect()
    # first what depends on how memory was used before: large arrays change what the allocator does
    if FRAMEWORK == "tensorflow":
        parts = (measure_tensorflow, measure_loads, measure_dlio)
    else:
        parts = (measure_inline, measure_keep, measure_loads, measure_batches, measure_workers, measure_start_methods, measure_dlio,
                 measure_pin)
    for part in parts:
        try:
            part()
        except Exception as why:
            tell(failed=part.__name__, why=" ".join(f"{type(why).__name__}: {why}".split())[:300])
    if speed["kept"]:
        tell(disturbed=speed["kept"])
    tell(done=True)


main()
