"""Every place where a command makes a system call fails once, with each error that such a call can report, or is half
done: the command ends in a sentence that names the file and the error, and a nonzero status, or its results are right;
it never crashes, hangs, or leaves something half written under its final name.

A place is a chain of callers within the program and the number of the call (see tests/preload/fail_call.c). Each place
fails at its first call, and at its last where it makes several. An interrupted call and one that is half done are no
failures: the results are right. What a command does without (facts of the machine) is in DISPENSABLE, with the keys of a
result that may then be missing. By default a sample is taken of each command, which depends on the names of the functions
and not on the build; --seed takes another one, --full all.

    test_calls.py [COMMAND...] [--full] [--seed N] [--only PLACE:N:HOW] [--keep]
"""
# takes 60 s
import argparse
import collections
import concurrent.futures
import errno
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from test_allocations import Symbols, Wrong, need  # noqa: E402
from util import SANITIZED, SOURCE, STOKER, skip, stoker, tiny  # noqa: E402

LIBRARY = pathlib.Path(os.environ.get("STOKER_TOOLS", "build/tests"), "libfail_call.so").absolute()
PROGRAM = os.path.realpath(STOKER)
HANGS = 60
DIFFERS = "status 0, and figures differ"
UNSUPPORTED = 97  # status with which the library ends a program where the kernel cannot do it

# ---- what can happen to a call ----

E = errno
MAKES = ("socket socketpair accept accept4 epoll_create1 eventfd2 timerfd_create signalfd4 memfd_create pipe pipe2 "
         "io_uring_setup dup dup2 dup3 inotify_init1").split()
HAPPENS = {
    "open openat creat": [E.EACCES, E.EIO, E.EMFILE, E.ENOSPC, E.EINTR],
    "read pread64 readv preadv preadv2 recvfrom": [E.EIO, E.EINTR, "half"],
    "write pwrite64 writev pwritev pwritev2 sendto": [E.EIO, E.ENOSPC, E.EINTR, "half"],
    "fsync fdatasync syncfs sync_file_range": [E.EIO, E.ENOSPC, E.EINTR],
    "close": [-E.EIO, -E.ENOSPC, -E.EINTR],
    "mkdir mkdirat rename renameat renameat2 link linkat symlink symlinkat ftruncate truncate fallocate":
        [E.EACCES, E.EIO, E.ENOSPC, E.EINTR],
    "unlink unlinkat rmdir chmod fchmod fchown chdir": [E.EACCES, E.EIO, E.EINTR],
    "stat lstat newfstatat statx access faccessat readlink readlinkat statfs fstat fstatfs getdents64 lseek":
        [E.EACCES, E.EIO, E.EINTR],
    "mmap": [E.EACCES, E.ENOMEM],
    "flock fcntl": [E.EIO, E.ENOLCK, E.EINTR],
    "fork pthread_create": [E.EAGAIN],
    "wait4 poll ppoll select pselect6 epoll_wait epoll_pwait recvmsg sendmsg": [E.EINTR],
    "connect bind listen": [E.EACCES, E.EINTR],
    " ".join(MAKES): [E.EMFILE],
    "io_uring_enter": [E.EINTR, E.EAGAIN, E.EIO],
    "io_uring_register": [E.ENOMEM],
}
HAPPENS = {name: hows for names, hows in HAPPENS.items() for name in names.split()}
OTHER = [E.EIO]
# calls that the program repeats, so that an interruption changes nothing
REPEATED = re.compile(r"^(open|openat|p?read|p?write|readv|writev|preadv|pwritev|fsync|fdatasync|syncfs|close|wait4|e?p?poll"
                      r"|recv|send|epoll_p?wait|flock|io_uring_enter|pread64|pwrite64)")


def hows_of(call, what, tmp):
    """What may happen to this call; an interruption and half a transfer only to what is no file of the kernel."""
    hows = HAPPENS.get(call, OTHER)
    if what.startswith("/") and not what.startswith(str(tmp)):
        hows = [h for h in hows if h not in (E.EINTR, -E.EINTR, "half", E.ENOSPC, -E.ENOSPC, -E.EIO)]
    return hows


# ---- commands ----

def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def leaves(value, path=""):
    if isinstance(value, dict):
        for k, v in value.items():
            yield from leaves(v, f"{path}.{k}")
    elif isinstance(value, list):
        yield f"{path}[#]", len(value)
        for i, v in enumerate(value):
            name = next((v[k] for k in ("name", "key", "check") if isinstance(v.get(k), str)), i) if isinstance(v, dict) else i
            yield from leaves(v, f"{path}[{name}]")
    else:
        yield path, value


TEMPORARY = re.compile(r"(\.tmp[^/]*|\.part|/\.stoker_\w+\.lock|\.lock|/\.stoker-image)$")
ENDS = {".html": "</html>\n", ".csv": "\n", ".yaml": "\n", ".svg": "</svg>\n"}
TIMES = re.compile(r"20\d\d-\d\d-\d\d[-T ]\d\d[-:]\d\d([-:]\d\d)?(\.\d+)?")
# Of a run, which measures, these figures are the same each time; of the others only that they are there.
STABLE = re.compile(
    r"\.json \.(status|reason|schema|configuration|dataset|integrity\.files|steps_per_epoch|num_accelerators|samples)|"
    r"verdicts\[(dataset|order|config|whole-run)\]\.(level|text)|\.training\.io\.[a-z]+\.(requests|asked_bytes|returned_bytes)$|"
    r"\.training\.(steps|epochs|samples)[a-z_]*$|study_run\.json|study\.json .*\.(state|reason|key)$")
VOLATILE = re.compile(r"latency|_s$|_s\.|begin|when")
# (call, what it was made of, keys of a result that may then be others or missing): facts that a result says it does not have
KERNEL = r"^(/proc|/sys|/etc|/usr|/dev|-$|\(|anon_inode)"
FACTS = (r"\.system\b|cpuinfo|meminfo|\.host_|\.storage_path\.|\.series\.|\.environment\.|process_io|\.training\.epochs.*\.(processors|memory|process)|"
         r"\.processors|hydra/hydra.yaml|\.hostname|result.json \.(process|clock)|\.page_cache\.(file_system|method)")
DISPENSABLE = [
    (r"", KERNEL, FACTS),
    # content of a file that could not be compared; the verdict on the dataset says of how many
    (r"open|read|stat", r"/(train|valid)/", r"\.dataset\.(content|extents)|verdicts\[dataset\]\.(text|facts)"),
    (r"ioctl", r"/(train|valid)/", r"\.dataset\.extents"),
    # memory is measured where the page cache is known to have served the run
    (r"stat|mmap", r"/(train|valid)/", r"\.memory_copy"),
    # said to be missing in not_digested
    (r"open|read|stat|fcntl|getdents", r"/(out|run-1\.partial)(/|$)|^/proc/self/fd/", r"\.integrity\.(files|not_digested)"),
    (r"statfs", r"", r"stdout|\.system\b"),
    # what the folder lies on
    (r"stat", r"/(data|out|scratch|saved)?$", r"\.series\.|\.storage_path\.|\.system\.|\.environment\."),
]


def files(folder):
    return {str(p.relative_to(folder)): p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink()}


class Command:
    """A command line in a folder of its own. `whole` is what a result is without a failure: what several of them agree on."""
    sample = 40  # of the quick sweep
    statuses = (0,)  # without a failure

    def __init__(self, name, argv, prepare=None, sample=None, again=None, env=None):
        # a run measures: more of its figures may be alike by chance
        self.measures = re.match("run|study r|replay", name) is not None
        self.bases = 4 if self.measures else 3
        self.name, self._argv, self._prepare, self.again = name, argv, prepare, again
        self.sample = sample or self.sample
        self.env = env or {}

    def argv(self, shared, folder):
        return [str(a) for a in self._argv(shared, folder)]

    def setup(self, shared, folder):
        folder.mkdir()
        if self._prepare:
            self._prepare(shared, folder)

    def results(self, folder, stdout):
        """{name: comparable} of all that the command leaves; what is not whole is Wrong."""
        text = self.text(stdout, folder)
        try:
            out = {f"stdout {k}": v for k, v in leaves(json.loads(text))}
        except ValueError:
            out = {f"stdout {i}": line for i, line in enumerate(text.splitlines())}
        for name, path in files(folder).items():
            if TEMPORARY.search(name):
                continue
            if name.endswith(".json"):
                try:
                    value = json.loads(self.text(path.read_text(), folder))
                except ValueError as e:
                    raise Wrong(f"half file: {name} is not JSON: {e}") from e
                out.update((f"{name} {k}", v) for k, v in leaves(value))
            elif path.suffix in ENDS:
                text = path.read_text()
                need(text.endswith(ENDS[path.suffix]), f"half file: {name} ends in '{text[-30:]}'")
                out[name] = TIMES.sub("", self.text(text, folder))
            elif path.suffix != ".log" and "trace" not in name:
                out[name] = digest(path)
        if self.measures:
            there = {f"{m[1]} has {m[2]}": True for k in out if (m := re.match(r"(\S+\.json) (\.[^.\[]+(?:\.[^.\[]+)?)", k)) and not re.search(r"\.what_if|\.limit\.|\.fleet\.", k)}
            # numbers in those files differ, and so may their length
            out = {k: ".integrity.files" in k or v for k, v in out.items() if not k.startswith("stdout") and
                   (" " not in k or STABLE.search(k) and not VOLATILE.search(k))} | there
        return out

    @staticmethod
    def text(text, folder):
        # what is free on the disk and in memory, and what this process takes of it, is not the command's
        text = re.sub(r"[\d.]+ [KMGTP]iB free", "SPACE free", text.replace(str(folder), "@"))
        return re.sub(r"memory: at most [\d.]+ [KMGTP]iB a run, [\d.]+ [KMGTP]iB available", "memory: enough", text)

    def learn(self, seen):
        self.whole = {k: v for k, v in seen[0].items() if all(k in s and s[k] == v for s in seen)}
        self.names = {k for k in seen[0] if " " not in k and all(k in s for s in seen)}

    def differs(self, got):
        return [k for k, v in self.whole.items() if got.get(k, self) != v]


def run_argv(**keys):
    return lambda shared, folder: ["run", *tiny(shared / "data", folder / "out", workflow__generate_data="false", **keys)]


def generate_argv(fmt, **keys):
    return lambda shared, folder: ["generate", *tiny(folder / "data", None, fmt=fmt, files=3, **keys)]


def full_run(shared, folder):
    return ["run", *tiny(folder / "data", folder / "out", files=4, dataset__num_files_eval=2, workflow__evaluation="true",
                         workflow__checkpoint="true", checkpoint__steps_between_checkpoints=2,
                         model__model_size_bytes=65536, checkpoint__checkpoint_folder=folder / "saved", run__trace="both",
                         workflow__profiling="true")]


def with_design(shared, folder):
    (folder / "config/workload").mkdir(parents=True)
    (folder / "config/workload/small.yaml").write_text(
        "model: {name: small}\nframework: pytorch\nworkflow: {generate_data: False, train: True}\n"
        "dataset: {data_folder: data/x, format: npz, num_files_train: 4, record_length_bytes: 4096}\n"
        "reader: {data_loader: pytorch, batch_size: 2, read_threads: 1}\n"
        "train: {epochs: 1, computation_time: 0.001}\n")
    (folder / "design.csv").write_text("model,epochs,processes,overrides,run\nsmall,1,1,,N\n")


def half_made(shared, folder):
    with_design(shared, folder)
    shutil.copytree(shared / "study/results", folder / "results")
    (folder / "design.csv").write_text("model,epochs,processes,overrides,run\nsmall,1,1,,Y\nsmall,1,1,reader.batch_size=4,N\n")


def study(verb, *options):
    return lambda shared, folder: ["study", verb, folder / "design.csv", "--config-dir", folder / "config", "--results",
                                   folder / "results", "--scratch", folder / "scratch", *options]


def workload(shared, folder):
    (folder / "job.yaml").write_text(
        "model: {name: small}\nframework: pytorch\ndataset: {data_folder: d, format: npz, num_files_train: 4, "
        "record_length_bytes: 4096}\nreader: {data_loader: pytorch, batch_size: 2}\ntrain: {epochs: 1}\n")


def job(shared, folder):
    (folder / "data").mkdir()
    for i in range(3):
        (folder / f"data/part{i}.npy").write_bytes(bytes(3000))


RECORDED = "cat {0}/part0.npy {0}/part1.npy {0}/part2.npy > {0}/all; mv {0}/all {0}/state.pt"
LOG = SOURCE / "examples/job.strace.gz"


FORMATS = "npz npy hdf5 tfrecord csv png jpeg indexed_binary mmap_indexed_binary".split()
COMMANDS = [
    Command("show config", lambda s, f: ["show", "config", f / "job.yaml"], workload, 15),
    Command("show workloads", lambda s, f: ["show", "workloads"], None, 8),
    Command("audit", lambda s, f: ["audit", "--json", s / "out1", s / "out2"], None, 20),
    Command("report", lambda s, f: ["report", s / "out1", s / "out2", "-o", f / "report.html", "--csv", f / "runs.csv"],
            None, 20),
    Command("compare", lambda s, f: ["compare", "--json", s / "out1", s / "out2"], None, 15),
    Command("verify", lambda s, f: ["verify", s / "data"], None, 15),
    *[Command(f"generate {x}", generate_argv(x), None, 6) for x in FORMATS],
    Command("generate direct", generate_argv("npz", storage__store="direct"), None, 6),
    Command("generate io_uring", generate_argv("npz", storage__store="io_uring"), None, 6),
    Command("run", run_argv(), None, 36),
    Command("run full", full_run, None, 36),
    *[Command(f"run {x}", run_argv(storage__store=x), None, 5) for x in ("direct", "io_uring", "mmap", "drop_behind+posix")],
    Command("study run", study("run"), with_design, 16),
    Command("study resume", study("run"), half_made, 12),
    Command("study status", study("status"), half_made, 10),
    Command("study dry run", study("run", "--dry-run"), with_design, 10),
    Command("run --repeat", lambda s, f: run_argv()(s, f) + ["--repeat", 2], None, 8),
    Command("plan", lambda s, f: ["plan", "--despite-verdicts", "--from", s / "out1", "-n", "8,16", "--json", f / "plan.json", "-o", f / "plan.html"], None, 8),
    Command("record", lambda s, f: ["record", "-o", f / "recording", "--", "sh", "-c", RECORDED.format(f / "data")], job, 12),
    Command("explain", lambda s, f: ["explain", LOG, "-o", f / "job.yaml"], None, 8),
    Command("explain a recording", lambda s, f: ["explain", s / "recording", "--json"], None, 8),
    Command("explain page", lambda s, f: ["explain", LOG, "-o", f / "job.html"], None, 6),
    Command("replay", lambda s, f: ["replay", s / "recording", "--data", f / "image", "--no-think", "-o", f / "compared.json"], None, 12),
]


def shared_inputs(shared):
    stoker("generate", *tiny(shared / "data", None))
    for i in (1, 2):
        stoker("run", *tiny(shared / "data", shared / f"out{i}", workflow__generate_data="false", reader__read_threads=i))
    with_design(shared, (shared / "study"))
    stoker(*map(str, study("run")(shared, shared / "study")))
    job(shared, shared / "study")
    stoker("record", "-o", shared / "recording", "--", "sh", "-c", RECORDED.format(shared / "study/data"))


# ---- one failure ----

def execute(command, shared, folder, fail):
    """Runs the command with a failure; returns (status, stdout, stderr, lines that the library told)."""
    told = folder.with_suffix(".told")
    env = {**os.environ, **command.env, "LD_PRELOAD": str(LIBRARY), "FAIL_CALL": fail, "FAIL_CALL_TOLD": str(told),
           "FAIL_CALL_PROGRAM": PROGRAM}
    out, err = folder.with_suffix(".stdout"), folder.with_suffix(".stderr")
    with open(out, "wb") as o, open(err, "wb") as e:
        child = subprocess.Popen([STOKER, *command.argv(shared, folder)], stdout=o, stderr=e, stdin=subprocess.DEVNULL,
                                 env=env, start_new_session=True)
        try:
            status = child.wait(HANGS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGTERM)
            try:
                child.wait(3)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            status = None
    lines = told.read_text(errors="replace").splitlines() if told.exists() else []
    texts = [p.read_text(errors="replace") for p in (out, err)]
    for p in (told, out, err, pathlib.Path(f"{told}.once")):
        p.unlink(missing_ok=True)
    return status, *texts, lines


def dispensable(call, what, key):
    return any(re.search(c, call) and re.search(w, what) and re.search(k, key) for c, w, k in DISPENSABLE)


def judge(command, folder, done, call, what, how, tmp):
    status, out, err, _ = done
    need(status is not None, f"hangs: {err[-300:]}")
    if call == "execve" and status in (126, 127) and err.strip():
        return  # of the program that is recorded
    need(0 <= status < 126 and not re.search(r"by signal|assert", err), f"crash: status {status}: {err[-500:]}")
    got = command.results(folder, out)
    if status == 0:
        differs = [k for k in command.differs(got) if not dispensable(call, what, k)]
        if differs and isinstance(how, int) and os.strerror(abs(how)) in out + err:
            return  # the answer says so, as that of a dry run
        if differs:
            some = "; ".join(f"{k} = {str(got.get(k, 'missing'))[:60]!r}, not {str(command.whole[k])[:60]!r}"
                             for k in differs[:4])
            raise Wrong(f"{DIFFERS}, {len(differs)}: {some}   [{err.strip()[-200:]}]")
        return
    number = abs(how) if isinstance(how, int) else 0
    need(how != "half" and not (number == E.EINTR and REPEATED.match(call)),
         f"not continued: status {status}: {err.strip()[-300:]}")
    need(status in (1, 2), f"status {status}: {err.strip()[-300:]}")
    need(err.strip(), "no sentence")
    need(os.strerror(number) in err, f"no errno: '{os.strerror(number)}' is not in '{err.strip()[-300:]}'")
    if what.startswith(str(tmp)) and "the output could not be" not in err:
        # a file without a name yet has none
        name = re.sub(r"^\.|(\.[0-9a-f]{16})?\.tmp\b.*$|\.part$|^#\d+ .*", "", os.path.basename(what))
        need(name in err, f"no name: {name} is not in '{err.strip()[-300:]}'")
    for k, v in got.items():
        if " " not in k and k in command.whole and pathlib.Path(k).suffix not in ENDS:
            need(v == command.whole[k], f"half file: {k} is not whole")


class Sweep:
    def __init__(self, args, tmp, shared):
        self.args, self.tmp, self.shared = args, tmp, shared
        self.symbols = Symbols()
        self.lock = threading.Lock()
        self.serial = 100000
        self.counts = collections.Counter()

    def folder(self):
        with self.lock:
            self.serial += 1
            return self.tmp / f"x{self.serial}"

    def remove(self, folder):
        if not self.args.keep:
            shutil.rmtree(folder, ignore_errors=True)

    def learn(self, command, pool):
        seen, places = [], {}

        def base(_):
            folder = self.folder()
            command.setup(self.shared, folder)
            return folder, *execute(command, self.shared, folder, "none")

        for folder, status, out, err, told in pool.map(base, range(command.bases)):
            if status == UNSUPPORTED:
                skip("the kernel cannot hand system calls back to the process (Linux 5.11, x86-64)")
            assert status in command.statuses, f"{command.name} fails without a failure: {status} {err}"
            seen.append(command.results(folder, out))
            now = {}
            for line in told:
                _, place, n, call, rc, callers, what = line.split(" ", 6)
                if callers == "-":
                    continue
                n = int(n)
                now.setdefault(place, {})[n] = (call, what, callers.split(","))
            for place, of in now.items():
                places.setdefault(place, of)
            self.remove(folder)
        command.learn(seen)
        return places

    def points(self, command, places):
        for place, of in sorted(places.items()):
            for n in sorted({1, max(of)}):
                call, what, callers = of.get(n, of[min(of)])
                for how in hows_of(call, what, self.tmp):
                    yield place, n, how, call, what, callers

    def some(self, points, count):
        """Points whose choice does not vary with the build, nor much with what else the program does."""
        self.symbols.look_up(a for *_, callers in points for a in callers)
        alike, rank = collections.Counter(), {}
        for i, (place, n, how, call, _, callers) in enumerate(points):
            key = (self.args.seed, call, n == 1, str(how), self.symbols.functions(callers))
            alike[key] += 1
            rank[i] = hashlib.sha256(repr((key, alike[key])).encode()).digest()
        return [points[i] for i in sorted(sorted(rank, key=rank.get)[:count])]

    def one(self, command, point):
        place, n, how, call, what, callers = point
        folder = self.folder()
        command.setup(self.shared, folder)
        done = execute(command, self.shared, folder, f"{place}:{n}:{how}")
        failed = [line.split(" ", 6) for line in done[3] if line.startswith("failed ")]
        try:
            if not failed and done[0] == 0:
                return None  # threads came in another order
            what = failed[0][6] if failed else what
            with self.lock:
                self.counts[command.name, how_name(how)] += 1
            judge(command, folder, done, call, what, how, self.tmp)
            return None
        except Wrong as e:
            return place, n, how, call, what.replace(str(folder), "@").replace(str(self.tmp), "TMP"), callers, \
                str(e).replace(str(folder), "@").replace(str(self.tmp), "TMP")
        finally:
            self.remove(folder)

    def confirmed(self, command, point):
        """A finding that other figures differ is made twice more, because a run measures, and what its runs without a
        failure agreed on may be chance: it stays one unless both are right. All others are findings at once."""
        found = self.one(command, point)
        if found and found[-1].startswith(DIFFERS):
            if not any([self.one(command, point) for _ in range(2)]):
                print(f"attempts: {command.name}: {point[3]} {how_name(point[2])}: right in 2 of 3: {found[-1][:300]}", flush=True)
                return None
        return found

    def sweep(self, command, pool):
        places = self.learn(command, pool)
        points = list(self.points(command, places))
        assert points, f"{command.name}: nothing to fail"
        every = len(points)
        if self.args.only:
            place, n, how = self.args.only.split(":")
            points = [p for p in points if p[0] == place and str(p[1]) == n and str(p[2]) == how]
        elif not self.args.full and len(points) > command.sample:
            points = self.some(points, command.sample)
        wrong = [w for w in pool.map(lambda p: self.confirmed(command, p), points) if w]
        print(f"{command.name}: {len(places)} places, {every} points, {len(points)} made to fail, {len(wrong)} findings",
              flush=True)
        alike = collections.defaultdict(list)  # findings at one place of the program, whatever the error
        for place, n, how, call, what, callers, why in wrong:
            alike[place, call].append((n, how, what, callers, why))
        for (place, call), of in alike.items():
            n, how, what, callers, why = of[0]
            print(f"   {call} {' '.join(sorted({how_name(h) for _, h, *_ in of}))} of {what}: {why}\n"
                  f"      at {place}:{n}:{how} {self.symbols.chain(callers)}", flush=True)
        return len(wrong)


def how_name(how):
    return how if isinstance(how, str) else ("after " if how < 0 else "") + errno.errorcode[abs(how)]


def main():
    if SANITIZED:
        skip("the preloaded library is not built with a sanitizer")
    if not LIBRARY.exists() or platform.machine() != "x86_64":
        skip(f"{LIBRARY} was not built, or not for x86-64")
    if not shutil.which("addr2line"):
        skip("addr2line is not installed")
    parser = argparse.ArgumentParser()
    parser.add_argument("command", nargs="*")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    args = parser.parse_args()
    commands = [c for c in COMMANDS if not args.command or c.name in args.command]
    with tempfile.TemporaryDirectory(dir=os.environ.get("FAULT_FOLDER")) as tmp, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        tmp = pathlib.Path(tmp)
        (tmp / "shared").mkdir()
        shared_inputs(tmp / "shared")
        s = Sweep(args, tmp, tmp / "shared")
        wrong = sum(s.sweep(c, pool) for c in commands)
    hows = sorted({h for _, h in s.counts})
    print("failures made: " + ", ".join(f"{h} {sum(n for (_, x), n in s.counts.items() if x == h)}" for h in hows))
    print(f"{sum(s.counts.values())} in all, {wrong} findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
