"""kill -9 over every command that writes, at random moments and at exact ones: what has its final name is whole, nothing
half made is accepted, what was finished stays, and the same command afterwards ends as if nothing had happened and leaves
nothing else.

Exact moments are the n-th rename, removal, sync, write, ... of a thread, by strace. Random ones are spread over the time
of an undisturbed command. Killed are all processes of a command, or one of them: a rank under mpirun, or of a study the
study alone, the run alone, or both. By default a sample; --full makes over 200 kills.

    test_kill.py [CASE...] [--full] [--seed N] [--keep FOLDER] [--only KILL]
"""
# takes 40 s
import argparse
import collections
import concurrent.futures
import csv
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, STOKER, left_out, skip, stoker, tiny  # noqa: E402

PROGRAM = os.path.realpath(STOKER)
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
LIVES_ON_S = 10
HANGS_S = 90
CALLS = {
    "rename": "rename,renameat,renameat2,link,linkat",
    "remove": "unlink,unlinkat,rmdir",
    "sync": "fsync,fdatasync,syncfs",
    "write": "write,pwrite64,writev,pwritev,pwritev2",
    "make": "mkdir,mkdirat",
    "open": "open,openat,creat",
}


class Wrong(Exception):
    pass


def need(condition, why):
    if not condition:
        raise Wrong(why)


# ---- processes ----

def stat_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""


def descendants(pid):
    children = collections.defaultdict(list)
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        fields = stat_of(entry.name).rsplit(")", 1)[-1].split()
        if len(fields) > 1:
            children[int(fields[1])].append(int(entry.name))
    found, ask = [], [pid]
    while ask:
        below = children.get(ask.pop(), [])
        found += below
        ask += below
    return found


def kill(pids):
    """Stops all first, so that none sees another one end."""
    for sig in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            try:
                os.kill(pid, sig)
            except ProcessLookupError:
                pass


def is_program(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe") == PROGRAM
    except OSError:
        return False


def living(folder):
    """Processes that work below this folder, and have not ended."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if f"{folder}/".encode() in words and " Z " not in stat_of(entry.name) and int(entry.name) != os.getpid():
            found.append((int(entry.name), words.replace(b"\0", b" ").decode(errors="replace")[:120]))
    return found


def wait_gone(folder, why):
    end = time.monotonic() + LIVES_ON_S
    while living(folder):
        if time.monotonic() > end:
            left = living(folder)
            kill([pid for pid, _ in left])
            raise Wrong(f"{why}: a process lives on for more than {LIVES_ON_S} s: {left}")
        time.sleep(0.05)


# ---- files ----

def names(folder):
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} if folder.exists() else set()


def digest(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


def digests(folder):
    return {n: digest(folder / n) for n in names(folder)}


def temporary(name):
    return bool(re.search(r"(^|/)\.[^/]+(\.part|\.lock|\.[0-9a-f]{16}\.tmp)$|\.tmp$|\.partial/|\.part$", name))


def call(*args, cwd=None):
    return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, errors="replace", timeout=HANGS_S,
                          cwd=cwd, env=ENV, stdin=subprocess.DEVNULL)


def json_of(path):
    try:
        return json.loads(path.read_text())
    except ValueError as e:
        raise Wrong(f"{path.name} under its final name is not whole: {e}") from e


RESULT = re.compile(r"(summary|result|iostat|\d+_output|\d+_per_epoch_stats|trace|trace-\d+)\.json$")
SENTENCE = re.compile(r"^stoker: .{20,}", re.M)


def result_is_honest(out, want):
    """The folder of a run that may have been killed: accepted only if it is whole. Whether it was."""
    there = names(out)
    for n in there:
        if RESULT.search(n) and not temporary(n):
            json_of(out / n)
    if not there:
        return False
    audit = call("audit", out)
    need(audit.returncode in (0, 1), f"audit: status {audit.returncode}: {audit.stderr}")
    if audit.returncode:
        need(SENTENCE.search(audit.stderr), f"audit says no sentence: {audit.stdout}{audit.stderr}")
    else:
        need(want <= there, f"audit accepts a result that lacks {sorted(want - there)}")
    for verb, more in ("report", ("-o", out.parent / "look.html")), ("compare", (out,)):
        done = call(verb, out, *more)
        need(done.returncode == audit.returncode or done.returncode == 2 and "no completed training epoch" in done.stderr,
             f"{verb}: status {done.returncode}, audit {audit.returncode}: {done.stderr}{audit.stderr}")
    (out.parent / "look.html").unlink(missing_ok=True)
    return audit.returncode == 0


def answer(out):
    """What does not depend on time."""
    r = json_of(out / "result.json")
    training = r.get("training", {})
    return (r["status"], training.get("epochs_done"), training.get("samples"), r.get("checkpoints", {}).get("count"),
            json.dumps(r.get("order"), sort_keys=True) if "order" in r else None,
            len(r.get("ranks", [])))


# ---- cases ----

def kill_tree(pid):
    """Kills a process and all below it, those that it starts meanwhile, too."""
    stopped = []
    while new := [p for p in (pid, *descendants(pid)) if p not in stopped]:
        for p in new:
            try:
                os.kill(p, signal.SIGSTOP)
            except ProcessLookupError:
                pass
        stopped += new
    kill(stopped)


class Case:
    """A command in a folder of its own. `exact`: kinds of calls at which it is killed."""
    exact = ("rename", "remove", "sync", "write", "make", "open")
    victims = ("all",)
    launcher = ()
    full, sample = 12, 2      # kills at random moments
    full_exact, sample_exact = 10, 3

    def __init__(self, name):
        self.name = name

    def prepare(self, folder):
        pass

    def argv(self, folder):
        raise NotImplementedError

    def command(self, folder):
        return [*self.launcher, PROGRAM, *map(str, self.argv(folder))]

    def again(self, folder, victim):
        return self.command(folder)

    def learn(self, folder):
        """From an undisturbed command."""
        self.files = names(folder)

    def killed(self, folder, victim):
        """Judges what is there after the kill; returns what finish gets."""

    def finish(self, folder, before):
        """Judges what is there after the same command was given again."""


class Generate(Case):
    def __init__(self, fmt, **keys):
        super().__init__(f"generate {fmt}")
        self.fmt, self.keys = fmt, keys

    def argv(self, folder):
        return ["generate", *tiny(folder / "data", None, fmt=self.fmt, **self.keys)]

    def learn(self, folder):
        super().learn(folder)
        self.want = digests(folder / "data")

    def killed(self, folder, victim):
        data = folder / "data"
        return judge_data(self, data, lambda: call("verify", *tiny(data, None, fmt=self.fmt, **self.keys)))

    def finish(self, folder, before):
        judge_data_again(self, folder / "data", before)
        done = call("verify", *tiny(folder / "data", None, fmt=self.fmt, **self.keys))
        need(done.returncode == 0, f"verify: {done.stderr}")


def judge_data(case, data, verify=None):
    """Of a dataset that was being generated. Inodes of the files that are whole."""
    there = {n: d for n, d in digests(data).items() if not temporary(n)}
    wrong = [n for n, d in there.items() if d != case.want.get(n) and "manifest" not in n]
    need(not wrong, f"not whole under their names: {wrong[:5]}")
    if (data / "stoker_manifest.json").exists():
        json_of(data / "stoker_manifest.json")
    if verify:
        done = verify()
        whole = not {n for n in case.want if "manifest" not in n} - there.keys()
        need(whole or done.returncode == 1 and SENTENCE.search(done.stderr),
             f"verify accepts half a dataset: {done.stdout}{done.stderr}")
    return {n: (data / n).stat().st_ino for n in there if "manifest" not in n and not n.endswith((".idx", ".sz.bin", ".off.bin"))}


def judge_data_again(case, data, inodes):
    got = {n: d for n, d in digests(data).items() if "manifest" not in n}
    want = {n: d for n, d in case.want.items() if "manifest" not in n}
    need(got == want, f"another dataset: {sorted(set(got.items()) ^ set(want.items()))[:5]}")
    again = [n for n, i in inodes.items() if (data / n).stat().st_ino != i]
    need(not again, f"{len(again)} of {len(inodes)} whole files were made again: {again[:5]}")


class Run(Case):
    """Generation, training, evaluation, checkpoints and a trace."""
    full, sample = 14, 2
    full_exact, sample_exact = 20, 4
    keys = dict(files=24, dataset__num_files_eval=6, workflow__evaluation="true", train__epochs=3, workflow__checkpoint="true",
                checkpoint__epochs_between_checkpoints=1, model__model_size_bytes=300000, run__trace="both",
                workflow__profiling="true", train__computation_time=0.005, evaluation__eval_time=0.005)

    def __init__(self, name="run", options=("-n", 2), launcher=(), results=("out",), **keys):
        super().__init__(name)
        self.options, self.launcher, self.results = options, launcher, results
        self.keys = {**self.keys, **keys}
        if launcher:
            self.victims = ("all", "rank")
            self.exact = ()
            self.full = 20

    def argv(self, folder):
        return ["run", *self.options, *tiny(folder / "data", folder / "out", **self.keys),
                f"checkpoint.checkpoint_folder={folder}/saved"]

    def learn(self, folder):
        super().learn(folder)
        self.want = digests(folder / "data")
        self.saved = digests(folder / "saved")
        self.answers = [answer(folder / o) for o in self.results]
        self.sealed = [{n for n in names(folder / o) if RESULT.search(n)} for o in self.results]

    def killed(self, folder, victim):
        inodes = judge_data(self, folder / "data") if self.want else {}
        judge_saved(self, folder / "saved")
        if victim == "rank":
            return inodes, {}  # the others end the run, and say so
        whole = {}
        for o, want in zip(self.results, self.sealed):
            if (folder / o).exists() and result_is_honest(folder / o, want):
                whole[o] = answer(folder / o)
        for o, a in whole.items():
            need(a == self.answers[self.results.index(o)], f"{o}: another answer is accepted: {a}")
        return inodes, whole

    def finish(self, folder, before):
        if self.want:
            judge_data_again(self, folder / "data", before[0])
        need(digests(folder / "saved") == self.saved, "other checkpoints than without the kill")
        for i, o in enumerate(self.results):
            need(result_is_honest(folder / o, self.sealed[i]), f"{o} is not whole after the second command")
            need(answer(folder / o) == self.answers[i], f"{o}: {answer(folder / o)}, not {self.answers[i]}")


def judge_saved(case, saved):
    there = {n: d for n, d in digests(saved).items() if not temporary(n)}
    wrong = [n for n, d in there.items() if d != case.saved.get(n)]
    need(not wrong, f"checkpoint files that are not whole under their names: {wrong[:5]}")


class Checkpoint(Case):
    """Checkpoints written, then read back and compared."""
    full, sample = 8, 1
    full_exact, sample_exact = 8, 2
    loads = None

    def __init__(self, fmt, **keys):
        super().__init__(f"checkpoint {fmt}")
        self.fmt, self.keys = fmt, keys

    def argv(self, folder, write=4, read=4):
        return ["run", "-n", 2, *tiny(folder / "data", folder / "out", workflow__generate_data="false", workflow__train="false",
                                      workflow__checkpoint="true", model__model_size_bytes=1000000,
                                      model__num_layers=4, model__layer_parameters="[300000,50000]",
                                      model__optimization_groups="[200000,300]",
                                      checkpoint__checkpoint_folder=folder / "saved",
                                      checkpoint__num_checkpoints_write=write, checkpoint__num_checkpoints_read=read,
                                      checkpoint__verify="true", checkpoint__format=self.fmt,
                                      checkpoint__fsync="true", **self.keys)]

    def learn(self, folder):
        super().learn(folder)
        self.saved = digests(folder / "saved")
        self.sealed = {n for n in names(folder / "out") if RESULT.search(n)}
        self.answer = answer(folder / "out")

    def killed(self, folder, victim):
        judge_saved(self, folder / "saved")
        if (folder / "out").exists():
            result_is_honest(folder / "out", self.sealed)
        there = {n for n in names(folder / "saved") if not temporary(n)}
        for n in sorted(there):
            self.load(folder / "saved" / n)
        # the program reads back what is whole and refuses the rest
        alone = {k: v for k, v in (a.split("=", 1) for a in map(str, self.argv(folder, 0, 4)) if "=" in a)}
        done = call("run", "-n", 2, "default", "-q", "-o", folder / "look", *[f"{k}={v}" for k, v in alone.items()])
        need((done.returncode == 0) == (there == self.saved.keys()),
             f"{len(there)} of {len(self.saved)} files, and reading back ends with {done.returncode}: {done.stderr}")
        need(done.returncode in (0, 1) and (done.returncode == 0 or SENTENCE.search(done.stderr)), done.stderr)
        shutil.rmtree(folder / "look", ignore_errors=True)

    def load(self, path):
        if path.suffix == ".pt":
            need(zipfile.ZipFile(path).testzip() is None, f"{path.name}: a damaged archive")
            if Checkpoint.loads:
                Checkpoint.loads(path)
        elif path.suffix == ".safetensors":
            data = path.read_bytes()
            n = int.from_bytes(data[:8], "little")
            header = json.loads(data[8:8 + n])
            end = max(t["data_offsets"][1] for k, t in header.items() if k != "__metadata__")
            need(len(data) == 8 + n + end, f"{path.name}: {len(data)} bytes, not {8 + n + end}")

    def finish(self, folder, before):
        need(digests(folder / "saved") == self.saved, "other checkpoints than without the kill")
        need(result_is_honest(folder / "out", self.sealed), "the result is not whole")
        need(answer(folder / "out") == self.answer, f"{answer(folder / 'out')}, not {self.answer}")


class Study(Case):
    full, sample = 24, 3
    full_exact, sample_exact = 60, 4
    victims = ("study", "run", "all")
    rows = 3

    def prepare(self, folder):
        (folder / "config/workload").mkdir(parents=True)
        (folder / "config/workload/small.yaml").write_text(
            "model: {name: small, model_size_bytes: 100000}\nframework: pytorch\n"
            "workflow: {generate_data: False, train: True, checkpoint: True}\n"
            "dataset: {data_folder: data/x, format: npz, num_files_train: 32, record_length_bytes: 4096}\n"
            "reader: {data_loader: pytorch, batch_size: 2, read_threads: 1}\ntrain: {epochs: 2, computation_time: 0.008}\n"
            f"checkpoint: {{checkpoint_folder: {folder}/ckpt}}\n")
        (folder / "d.csv").write_text("model,epochs,processes,overrides,run\nsmall,1,1,,N\n# between\nsmall,1,2,,N\n"
                                      "small,2,1,++workload.dataset.format=npy,N\n")

    def argv(self, folder):
        return ["study", "run", folder / "d.csv", "--config-dir", folder / "config", "--results", folder / "results",
                "--scratch", folder / "scratch", "-q"]

    def again(self, folder, victim):
        states = self.states(folder)
        # a run that was killed alone is a run that failed
        return [*self.command(folder), *(["--retry"] if "F" in states else [])]

    @staticmethod
    def states(folder):
        lines = (folder / "d.csv").read_text().splitlines(keepends=True)
        need(len(lines) == 5 and lines[2] == "# between\n" and lines[-1].endswith("\n"), f"the design is damaged: {lines}")
        rows = list(csv.DictReader(x for x in lines if not x.startswith("#")))
        states = [r["run"] for r in rows]
        need(len(states) == 3 and set(states) <= set("NYF"), f"states: {states}")
        return states

    @staticmethod
    def ids(folder):
        """Of runs that have their final name: {folder: run_id}; with the mark they are finished."""
        found = {}
        for p in (folder / "results").rglob("study_run.json"):
            json_of(p)
            if p.parent.suffix not in (".partial", ".failed"):
                found[str(p.parent.relative_to(folder))] = json_of(p.parent / "result.json")["run_id"]
        return found

    @staticmethod
    def complete(folder):
        """All runs that came to their end, also those that have not their name yet."""
        found = set()
        for p in (folder / "results").rglob("study_run.json"):
            if p.parent.suffix != ".failed":
                found.add(json_of(p.parent / "result.json")["run_id"])
        return found

    def learn(self, folder):
        super().learn(folder)
        self.folders = set(self.ids(folder))
        need(len(self.folders) == 3, f"{self.folders}")

    def killed(self, folder, victim):
        states = self.states(folder)
        need("F" not in states or victim in ("run", "exact", "all"), f"a row failed: {states}")
        ids = self.ids(folder)
        need(states.count("Y") <= len(ids), f"{states}, and {len(ids)} results")
        for f in ids:
            done = call("audit", folder / f)
            need(done.returncode == 0, f"{f} has its name and is not whole: {done.stderr}")
        for p in (folder / "results").glob("*.study.json"):
            json_of(p)
        done = call("study", "status", folder / "d.csv", "--config-dir", folder / "config", "--results", folder / "results",
                    "--scratch", folder / "scratch")
        need(done.returncode == 0, f"study status: {done.stderr}")
        if (folder / "results").exists():
            done = call("audit", folder / "results")
            need(done.returncode == 0 or done.returncode in (1, 2) and SENTENCE.search(done.stderr),
                 f"audit of the results: {done.stderr}")
        for p in [*(folder / "results").rglob("result.json")]:
            json_of(p)
        return self.complete(folder)

    def finish(self, folder, before):
        need(self.states(folder) == ["Y"] * 3, f"{self.states(folder)}")
        ids = self.ids(folder)
        need(set(ids) == self.folders, f"{sorted(ids)}")
        lost = before - set(ids.values())
        need(not lost, f"{len(lost)} finished runs were made again")
        ledger = json_of(folder / "results/d.csv.study.json")
        need([r["state"] for r in ledger["runs"]] == ["done"] * 3, f"ledger: {[r['state'] for r in ledger['runs']]}")
        need(not (folder / "scratch").exists(), f"the scratch folder is left: {names(folder / 'scratch')}")
        need(call("audit", folder / "results").returncode == 0, "audit of the results")


class Reading(Case):
    """Commands that read results and write a page, tables, plots, or nothing."""
    full, sample = 6, 1
    full_exact, sample_exact = 10, 4
    outputs = ("page.html", "runs.csv")

    def __init__(self, verb, *more):
        super().__init__(verb if verb != "report" else f"report{' --plots' if more else ''}")
        self.verb, self.more = verb, more

    def prepare(self, folder):
        shutil.copytree(self.shared / "results", folder / "results")
        if self.verb == "report":
            for o in self.outputs:
                (folder / o).write_text("old\n")

    def argv(self, folder):
        results = folder / "results"
        if self.verb == "report":
            return ["report", results, "-o", folder / "page.html", "--csv", folder / "runs.csv",
                    *[m.format(folder=folder) for m in self.more]]
        return [self.verb, *([results / "a", results / "b"] if self.verb == "compare" else [results])]

    @staticmethod
    def timeless(path):
        return re.sub(rb"\d{4}-\d\d-\d\d[ T][\d:]+", b"", path.read_bytes()).replace(os.fsencode(path.parent), b"")

    def learn(self, folder):
        super().learn(folder)
        self.inputs = digests(folder / "results")
        self.want = {n: self.timeless(folder / n) for n in self.files if not n.startswith("results/")}

    def killed(self, folder, victim):
        need(digests(folder / "results") == self.inputs, "the results were changed")
        for n in names(folder):
            if n in self.want and (folder / n).suffix in (".html", ".csv", ".svg", ".png", ".gp", ".dat"):
                text = self.timeless(folder / n)
                need(text in (b"old\n", self.want[n]), f"{n} is neither the old one nor the new one: {len(text)} bytes, "
                     f"not {len(self.want[n])}")

    def finish(self, folder, before):
        need(digests(folder / "results") == self.inputs, "the results were changed")
        for n, want in self.want.items():
            if (folder / n).suffix in (".html", ".csv", ".svg", ".png", ".gp", ".dat"):
                need(self.timeless(folder / n) == want, f"{n} is another one")


def mpi(n):
    for mpirun, more in ("mpirun.openmpi", ["--oversubscribe", "--allow-run-as-root"]), ("mpirun.mpich", []):
        if shutil.which(mpirun):
            return [mpirun, *more, "-n", str(n)]
    return None


def cases():
    few = dict(files=12, train__epochs=1, workflow__checkpoint="false", run__trace="none", workflow__profiling="false")
    every = [
        Generate("npz", files=1500, dataset__record_length_bytes=400, dataset__num_subfolders_train=2),
        Generate("tfrecord", files=1500, dataset__record_length_bytes=300, dataset__num_samples_per_file=2),
        Generate("hdf5", files=1200, dataset__record_length_bytes=500),
        Generate("jpeg", files=1000, dataset__record_length_bytes=900),
        Run(),
        Run("run --repeat", options=("-n", 1, "--repeat", 3), results=("out/1", "out/2", "out/3"), **few),
        Run("run --small", options=("-n", 1, "--small"), **dict(few, files=64)),
        *[Checkpoint(f) for f in ("torch", "safetensors", "distcp", "tensorflow")],
        Study("study run"),
        Reading("report"), Reading("report", "--plots", "{folder}/plots"), Reading("compare"), Reading("audit"),
    ]
    if mpi(2) is None:
        left_out("two processes: there is no mpirun")
    else:
        every.append(Run("run under mpirun", options=("-n", 2), launcher=mpi(2)))
    for c in every:
        if c.name.startswith(("run -", "report -")) or c.name in ("compare", "audit"):
            c.full, c.full_exact, c.sample, c.sample_exact = 5, 8, 1, 1
    return every


# without --full; test_kill_generate.py has the other formats
SAMPLED = ("generate npz", "run", "run --repeat", "checkpoint torch", "checkpoint safetensors", "study run", "report",
           "report --plots", "run under mpirun")


# ---- one kill ----

class Tester:
    def __init__(self, args, tmp):
        self.args, self.tmp = args, tmp
        self.counts = collections.Counter()

    def undisturbed(self, case, number):
        folder = self.tmp / f"{case.name}-base{number}".replace(" ", "_")
        folder.mkdir()
        case.prepare(folder)
        begin = time.monotonic()
        trace = self.tmp / f"{folder.name}.calls"
        tracer = ["strace", "-f", "-qq", "-o", trace, "-e", "trace=" + ",".join(CALLS.values())] if number else []
        done = subprocess.run([*map(str, tracer), *case.command(folder)], capture_output=True, text=True, env=ENV,
                              stdin=subprocess.DEVNULL, timeout=HANGS_S)
        took = time.monotonic() - begin
        assert done.returncode == 0, f"{case.name} fails undisturbed: {done.stdout}{done.stderr}"
        if not number:
            case.learn(folder)
        most = collections.defaultdict(collections.Counter)
        if number:
            kinds = {c: k for k, of in CALLS.items() for c in of.split(",")}
            for line in trace.read_text(errors="replace").splitlines():
                m = re.match(r"(\d+) +(\w+)\(", line)
                if m and m[2] in kinds:
                    most[kinds[m[2]]][m[1]] += 1
        shutil.rmtree(folder)
        return took, {k: max(of.values()) for k, of in most.items()}

    def kills(self, case, took, most, rng):
        n, exact = (case.full, case.full_exact) if self.args.full else (case.sample, case.sample_exact)
        for i in range(n):
            at = took * (i + rng.random()) / n
            yield f"{case.victims[i % len(case.victims)]}@{at:.3f}", at, case.victims[i % len(case.victims)], None
        points = [(k, n) for k in case.exact for n in range(1, most.get(k, 0) + 1)]
        # few of the many, every one of the few: each kind has its share
        chosen = []
        kinds = [k for k in case.exact if most.get(k)]
        for i in range(exact if kinds else 0):
            kind = kinds[i % len(kinds)]
            left = [p for p in points if p[0] == kind and p not in chosen]
            if left:
                chosen.append(rng.choice(left))
        for kind, n in chosen:
            yield f"{kind}#{n}", None, "exact", (kind, n)

    def strike(self, case, folder, at, victim, point):
        """Starts the command and kills it. Whether it was killed."""
        tracer = []
        if point:
            calls = CALLS[point[0]]
            tracer = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-e",
                      f"inject={calls}:signal=KILL:when={point[1]}"]
        process = subprocess.Popen([*tracer, *case.command(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   stdin=subprocess.DEVNULL, env=ENV, start_new_session=True)
        if point:
            try:
                process.wait(HANGS_S)
            except subprocess.TimeoutExpired as e:
                kill([process.pid, *descendants(process.pid)])
                raise Wrong("hangs after the kill") from e
            return process.returncode != 0
        time.sleep(at)
        if process.poll() is not None:
            return False
        below = descendants(process.pid)
        if victim == "all":
            kill_tree(process.pid)
        elif victim == "study":
            kill([process.pid])
        elif victim == "run":
            kill(below)
        else:
            ranks = [p for p in below if is_program(p)]
            kill([ranks[-1]] if ranks else [process.pid, *below])
        try:
            process.wait(HANGS_S)
        except subprocess.TimeoutExpired as e:
            kill([process.pid, *descendants(process.pid)])
            raise Wrong(f"hangs after the kill of {victim}") from e
        return victim != "run" or bool(below)

    def one(self, case, what):
        name, at, victim, point = what
        if self.args.only and name != self.args.only:
            return None
        folder = self.tmp / re.sub(r"[^\w]", "_", f"{case.name}-{name}")
        folder.mkdir()
        try:
            case.prepare(folder)
            shm = set(os.listdir("/dev/shm"))
            struck = self.strike(case, folder, at, victim, point)
            self.counts[case.name, "killed" if struck else "ended before"] += 1
            wait_gone(folder, "after the kill")
            before = case.killed(folder, victim)
            done = subprocess.run(case.again(folder, victim), capture_output=True, text=True, timeout=HANGS_S, env=ENV,
                                  stdin=subprocess.DEVNULL)
            need(done.returncode == 0, f"the same command again: status {done.returncode}: {done.stdout[-300:]}{done.stderr}")
            case.finish(folder, before)
            left = names(folder) ^ case.files
            need(not left, f"names that an undisturbed command does not leave, or leaves: {sorted(left)[:6]}")
            # those of processes that live belong to other tests
            own = [n for n in set(os.listdir("/dev/shm")) - shm
                   if (m := re.fullmatch(r"stoker_(\d+)_\d+_\d+", n)) and not stat_of(m[1])]
            need(not own, f"shared memory is left: {own}")
            wait_gone(folder, "at the end")
            return None
        except (Wrong, KeyError, ValueError, OSError, subprocess.TimeoutExpired) as e:
            if self.args.keep:
                shutil.copytree(folder, pathlib.Path(self.args.keep) / folder.name, dirs_exist_ok=True)
            return f"{name}: {type(e).__name__ if not isinstance(e, Wrong) else ''}{e}".replace(str(folder), "@")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def case(self, case, pool):
        rng = random.Random(f"{self.args.seed} {case.name}")
        took = min(self.undisturbed(case, 0)[0] for _ in range(2 if self.args.full else 1))
        most = self.undisturbed(case, 1)[1] if case.exact else {}
        kills = list(self.kills(case, took, most, rng))
        wrong = [w for w in pool.map(lambda k: self.one(case, k), kills) if w]
        print(f"{case.name}: {took:.2f} s undisturbed, {self.counts[case.name, 'killed']} kills, "
              f"{self.counts[case.name, 'ended before']} ended before, {len(wrong)} findings", flush=True)
        for w in wrong:
            print(f"   {w}", flush=True)
        return len(wrong)


def shared_results(shared):
    for name, seed in ("a", 1), ("b", 2):
        stoker("run", "-n", 2, *tiny(shared / "data", shared / "results" / name, files=16, train__epochs=3,
                                     run__trace="both", train__seed=seed, storage__store="memory"))


def main():
    if SANITIZED:
        skip("moments are those of the program as it is used")
    if not shutil.which("strace"):
        skip("strace is not installed")
    parser = argparse.ArgumentParser()
    parser.add_argument("case", nargs="*")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep")
    parser.add_argument("--only")
    args = parser.parse_args()
    try:
        import torch
        Checkpoint.loads = torch.load
    except ImportError:
        left_out("checkpoints read by torch.load: torch is not installed")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(2) as pool:
        tmp = pathlib.Path(tmp)
        Reading.shared = tmp / "shared"
        shared_results(tmp / "shared")
        t = Tester(args, tmp)
        wrong = sum(t.case(c, pool) for c in cases()
                    if c.name in (args.case or SAMPLED) or args.full and not args.case)
    killed = sum(n for (_, what), n in t.counts.items() if what == "killed")
    print(f"{killed} kills in {time.monotonic() - begin:.0f} s, {wrong} findings")
    return 1 if wrong or not killed else 0


if __name__ == "__main__":
    sys.exit(main())
