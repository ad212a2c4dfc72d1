"""Damaged and hostile files: results of ours and of DLIO, designs and their ledgers, workloads, traces, manifests, samples and
checkpoints, mutated in their bytes and in their structure. Every command ends in time, with a status of its own and plain text;
under sanitizers (a build with STOKER_SANITIZE) they find nothing. A damaged checkpoint that is read back without an error must
be damaged where nothing is lost (HARMLESS below).

    test_mutations.py [--count N] [--seed N] [--only KIND[,KIND...]] [--one KIND:N] [--keep FOLDER]

The suite makes a sample of a fixed seed; --one repeats a single mutation that was reported.
"""
# tier: long
# takes 40 s
import argparse
import collections
import concurrent.futures
import io
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, SOURCE, STOKER, tiny  # noqa: E402

PROGRAM = os.path.abspath(STOKER)
HANGS = 60
MISLEADS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
EVIL = "\x1b[31m\x07\x7f\x85\u202e\u2028\nFORGED<!--<script>"
# An environment without what a sanitizer would do to a refused allocation of a size that a file says.
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS="allocator_may_return_null=1:detect_leaks=1:abort_on_error=0:exitcode=99",
                   UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1:exitcode=99")


class Wrong(Exception):
    pass


# ---- mutations of bytes ----

def flip(r, b):
    b = bytearray(b)
    for _ in range(r.choice((1, 1, 1, 2, 8))):
        if b:
            b[r.randrange(len(b))] ^= 1 << r.randrange(8)
    return bytes(b)


def put(r, b):
    at = r.randrange(len(b) + 1)
    n = r.choice((1, 2, 4, 8))
    return b[:at] + r.choice((b"\0" * n, b"\xff" * n, b"\x7f" + b"\xff" * (n - 1), os.urandom(0) + bytes(r.randrange(256) for _ in range(n)),
                              b"\x80" * n)) + b[at + n:]


def cut(r, b):
    return b[:r.randrange(len(b) + 1)]


def remove(r, b):
    at = r.randrange(len(b) + 1)
    return b[:at] + b[at + r.choice((1, 3, 16, 300)):]


def repeat(r, b):
    at, n = r.randrange(len(b) + 1), r.choice((1, 5, 64, 1000))
    return b[:at] + b[at:at + n] * r.choice((2, 2, 50)) + b[at + n:]


def shuffle(r, b):
    if len(b) < 4:
        return b
    i, j, k = sorted(r.randrange(len(b)) for _ in range(3))
    return b[:i] + b[j:k] + b[i:j] + b[k:]


def evil(r, b):
    at = r.randrange(len(b) + 1)
    return b[:at] + r.choice((EVIL.encode(), b"\xff\xfe\x1b", b"\0", b"\xed\xa0\x80")) + b[at:]


BYTES = (flip, flip, put, put, cut, remove, repeat, shuffle, evil)


# ---- mutations of structure ----

class Raw(str):
    """A token as it is to be written."""


VALUES = (None, True, False, 0, -1, 1, 2 ** 31, 2 ** 32, 2 ** 53 + 1, 2 ** 63 - 1, 2 ** 63, -2 ** 63, 2 ** 64, 1e18, 1e300, -1e300, 1e-320, 0.1,
          "", "x", "nan", "-1", "9" * 400, EVIL, "A" * 70000, "%s%n", [], {}, [[]], [None], {"": None}, [1, "a", {}], Raw("NaN"),
          Raw("-Infinity"), Raw("1e999"), Raw("-0"), Raw("-0.0"), Raw("00"), Raw("1" * 5000), Raw("[" * 3000 + "]" * 3000),
          Raw('{"a":' * 3000 + "1" + "}" * 3000), Raw('"\\ud800"'), Raw('"\\u0000"'), Raw("{,}"))


def written(value):
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(json.dumps(k.rstrip("\1")) + ":" + written(v) for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(v) for v in value) + "]"
    return json.dumps(value)


def places(value, out, parent=None, key=None):
    out.append((parent, key))
    if isinstance(value, dict):
        for k, v in value.items():
            places(v, out, value, k)
    elif isinstance(value, list):
        for i, v in enumerate(value):
            places(v, out, value, i)


def structure(r, b):
    """One to three members of a JSON document get another value or name, go, or are there twice."""
    try:
        document = json.loads(b)
    except ValueError:
        return flip(r, b)
    for _ in range(r.choice((1, 1, 2, 3))):
        all_places = []
        places(document, all_places)
        parent, key = r.choice(all_places)
        if parent is None:
            if r.random() < 0.05:
                return written(r.choice(VALUES)).encode("utf-8", "surrogatepass")
            continue
        how = r.randrange(8)
        if how < 4:
            old = parent[key]
            parent[key] = r.choice(VALUES)
            if isinstance(old, (int, float)) and not isinstance(old, bool) and r.random() < 0.5:
                parent[key] = r.choice((old * 1000, -old, old + 1, old * 2 ** 40, float(old) / 3))
        elif how == 4:
            del parent[key]
        elif how == 5 and isinstance(parent, dict):
            parent[r.choice(("", EVIL, key + "x", "__proto__", "a" * 300))] = parent.pop(key)
        elif how == 6 and isinstance(parent, dict):
            parent[key + "\1"] = r.choice(VALUES)  # the same key again
        elif isinstance(parent, list):
            parent.extend(parent[key:key + 1] * r.choice((1, 3, 2000)))
        else:
            parent[key] = [parent[key]]
    return written(document).encode("utf-8", "surrogatepass")


WORDS = re.compile(rb"[A-Za-z0-9_.+-]+")


def words(r, b):
    """One to three words or numbers of a text become others."""
    for _ in range(r.choice((1, 1, 2, 3))):
        spans = [m.span() for m in WORDS.finditer(b[:200000])]
        if not spans:
            return evil(r, b)
        a, z = r.choice(spans)
        new = r.choice((b"", b"-1", b"0", b"1e999", b"nan", b"-inf", b"9223372036854775808", b"99999999999999999999", b"1e-400", b"true", b"null",
                        b"[", b"{", b"'", b'"', b"${a.b}", b"*x", b"&x", b"!!binary", b"a: b", EVIL.encode(), b"\xff", b"A" * 5000, b"[" * 500,
                        b"{a: " * 500, b[a:z] * 2, b"0x7fffffff", b".5", b"1_0", b"\t", b"# ", b"| "))
        b = b[:a] + new + b[z:]
    return b


# ---- one command ----

def made(args, cwd):
    done = command(args, cwd)
    assert done.returncode == 0, (args, done.stderr)


def command(args, cwd, hangs=HANGS):
    try:
        done = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, timeout=hangs, cwd=cwd, env=ENVIRONMENT,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as e:
        raise Wrong(f"no end within {hangs} s") from e
    if b"Sanitizer" in done.stderr or b"runtime error:" in done.stderr:
        raise Wrong("sanitizer: " + done.stderr.decode(errors="replace")[-6000:])
    if done.returncode not in (0, 1, 2, 3):
        raise Wrong(f"status {done.returncode}: {done.stderr[-600:]!r}")
    for name, raw in (("stdout", done.stdout), ("stderr", done.stderr)):
        try:
            text = raw.decode()
        except UnicodeDecodeError as e:
            raise Wrong(f"{name} is no UTF-8: {raw[max(0, e.start - 60):e.start + 20]!r}") from e
        bad = MISLEADS.search(text)
        if bad:
            raise Wrong(f"{name} has {bad.group()!r}: {text[max(0, bad.start() - 100):bad.end() + 20]!r}")
        # a line break in a design begins a row, which has a line of its own in the matrix
        # behind an escaped line break, a long line was folded there
        forged = re.search(r"(?:\A|.{0,300}(?<!\\n)\n)\s*FORGED.{0,100}", text, re.S)
        if args[:2] != ["study", "status"] and forged:
            raise Wrong(f"{name} has a line of the file's: {forged.group()!r}")
    if done.returncode and b"stoker: " not in done.stderr:
        raise Wrong(f"status {done.returncode} without a sentence: {done.stderr[-300:]!r}")
    return done


# ---- kinds: what is mutated, and what reads it ----

class Kind:
    """Files below `base`; `read(folder, r)` runs the commands that read a mutated copy."""
    how = BYTES

    def __init__(self, tmp):
        self.tmp = tmp
        self.base = tmp / ("base-" + type(self).__name__)
        self.make()
        self.files = [p for p in self.targets() if p.stat().st_size]

    def targets(self):
        return sorted(p for p in self.base.rglob("*") if p.is_file())

    def mutators(self, path):
        return (*BYTES, structure, structure, structure, structure, words) if path.suffix == ".json" else (*BYTES, words, words, words)

    def mutate(self, folder, r):
        """Returns what was done: [(path, mutation, bytes before)]."""
        done = []
        for _ in range(r.choice((1, 1, 1, 2))):
            source = r.choice(self.files)
            path = folder / source.relative_to(self.base)
            before = path.read_bytes()
            how = r.choice(self.mutators(path))
            after = how(r, before)
            path.unlink()
            path.write_bytes(after)
            done.append((path.relative_to(folder), how.__name__, before, after))
        return done


def twin(source, target):
    for p in [source, *sorted(source.rglob("*"))]:
        to = target / p.relative_to(source)
        if p.is_dir():
            to.mkdir()
        else:
            os.link(p, to)


class Results(Kind):
    """A result of ours."""

    def make(self):
        args = tiny(self.tmp / "result-data", self.base, train__epochs=2, dataset__num_files_eval=2, dataset__record_length_bytes=256,
                    workflow__evaluation="true", workflow__checkpoint="true", checkpoint__checkpoint_folder=self.tmp / "result-ckpt",
                    checkpoint__steps_between_checkpoints=2, run__trace="chrome", workflow__profiling="true", profiling__profiler="iostat")
        made(["run", *args, "-n", 2], self.tmp)

    def targets(self):
        files = [p for p in super().targets() if not p.name.startswith("trace")]
        return files + [p for p in files if p.name == "result.json"] * 8

    def read(self, folder, r):
        command(["audit", "-v", folder], self.tmp)
        n = r.randrange(4)
        if n == 0:
            json_text = command(["audit", "--json", folder], self.tmp)
            if json_text.returncode == 0:
                json.loads(json_text.stdout)
        elif n == 1:
            command(["compare", folder, self.base], self.tmp)
        elif n == 2:
            report(folder, self)
        else:
            command(["compare", "--json", "--check", self.base, folder], self.tmp)


def report(folder, kind, *more):
    page = folder.parent / f"{folder.name}-{threading.get_ident()}.html"  # several report the same folder at a time
    command(["report", folder, *more, "-o", page, "--csv", page.with_suffix(".csv")], kind.tmp)
    if page.exists():
        text = page.read_bytes().decode()
        bad = MISLEADS.search(text)
        if bad:
            raise Wrong(f"the page has {bad.group()!r}: {text[max(0, bad.start() - 100):bad.end() + 20]!r}")
        data = re.search(r'id="data">(.*?)</script>', text, re.S).group(1)
        if re.search("[<>&]", data):
            raise Wrong("the data of the page end their element")
        json.loads(data)
        page.unlink()
        page.with_suffix(".csv").unlink()


class Sums(Kind):
    """Files that sum up runs: of repetitions, of a search for accelerators, of one for writers, of a truth table; and a plan."""

    def make(self):
        args = tiny(self.tmp / "sums-data", None, files=24, reader__batch_size=1, storage__store="memory")
        made(["run", "--repeat", 2, *args, "-o", self.base / "repeat"], self.tmp)
        made(["run", "--truth-table", *args, "-o", self.base / "table"], self.tmp)
        made(["capacity", *args, "--max", 2, "--time", 1, "-o", self.base / "search"], self.tmp)
        made(["capacity", "--checkpoint", *args, "--max", 1, "-o", self.base / "writers", "model.model_size_bytes=1000",
              f"checkpoint.checkpoint_folder={self.tmp / 'sums-checkpoints'}"], self.tmp)
        made(["plan", "--point", "hosts=1,accelerators=8,samples_per_s=160,au=93.1", "--model", "unet3d_h100", "-n", "8",
              "--json", self.base / "plan.json"], self.tmp)

    def targets(self):
        return [p for p in super().targets() if p.name in ("repeat.json", "truth_table.json", "capacity.json", "plan.json")]

    def read(self, folder, r):
        command(["audit", "--quick", "-v", folder], self.tmp)
        done = command(["audit", "--quick", "--json", folder], self.tmp)
        assert len(json.loads(done.stdout)["sums"]) == 4, done.stdout
        done = command(["audit", "--json", folder / "plan.json"], self.tmp)
        assert len(json.loads(done.stdout)["sums"]) == 1, done.stdout


class Dlio(Results):
    """A result of DLIO's."""

    def make(self):
        shutil.copytree(SOURCE / "tests/data/dlio-output", self.base)
        (self.base / "model_states-0.pt").unlink(missing_ok=True)
        hydra = self.base / ".hydra"
        hydra.mkdir(exist_ok=True)
        if not (hydra / "config.yaml").exists():
            (hydra / "config.yaml").write_text("workload:\n  model: {name: unet3d}\n  framework: pytorch\n  dataset:\n    data_folder: data/x\n"
                                               "    format: npz\n    num_files_train: 8\n    record_length_bytes: 4096\n  reader:\n"
                                               "    batch_size: 2\n    read_threads: 1\n  train: {epochs: 2, computation_time: 0.01}\n")
            (hydra / "overrides.yaml").write_text("- workload=unet3d\n- ++workload.reader.batch_size=2\n")


class Published(Results):
    """A training with DLIO 2.0 and checkpoints with the DLIO of today, as MLPerf Storage published them."""

    def make(self):
        for i, part in enumerate(("Nutanix", "20260723_140825", "Solidigm")):
            folder = [p.parent for p in (SOURCE / "tests/data/mlperf").rglob("summary.json") if part in str(p)][0]
            shutil.copytree(folder, self.base / f"{i}")


class Study(Kind):
    """A design, its ledger, the marks of its runs, its workload."""

    def make(self):
        self.base.mkdir()
        (self.base / "small.yaml").write_text("model: {name: small}\nframework: pytorch\ndataset: {format: npz, num_files_train: 8, "
                                              "record_length_bytes: 64, num_files_eval: 0}\nreader: {data_loader: pytorch, batch_size: 1}\n"
                                              "train: {epochs: 1, computation_time: 0}\nworkflow: {evaluation: False}\n")
        (self.base / "d.csv").write_text("# what\nmodel,epochs,processes,overrides,run,repeat\nsmall,1,1,,N,1\n"
                                         "small,1,2,++workload.reader.batch_size=2,N,2\n\"small\",1,1,++workload.dataset.format=npy,Y,1\n")
        made(["study", "run", "d.csv", "--config-dir", ".", "-q"], self.base)
        for p in self.base.rglob("*"):
            if p.is_file() and p.name.endswith((".log", ".npz", ".npy")):
                p.unlink()

    def targets(self):
        files = super().targets()
        return [p for p in files if p.suffix in (".csv", ".yaml") or "study" in p.name] * 6 + files

    def read(self, folder, r):
        options = ["--config-dir", "."]
        n = r.randrange(4)
        if n < 2:
            command(["study", "run", "d.csv", *options, "--dry-run", *(["--small"] if n else [])], folder)
        elif n == 2:
            command(["study", "status", "d.csv", *options, "--svg", "s.svg"], folder)
        else:
            command(["study", "sbatch", "d.csv", *options], folder)


class Workload(Kind):
    """Workloads, printed and looked at."""

    def make(self):
        self.base.mkdir()
        for name in ("my_job.yaml",):
            shutil.copy(SOURCE / "examples" / name, self.base / "w.yaml")
        for n, p in enumerate(sorted((SOURCE / "workloads").rglob("*.yaml"))[::7]):
            shutil.copy(p, self.base / f"b{n}.yaml")

    def read(self, folder, r):
        for p in sorted(folder.iterdir()):
            before = self.base / p.name
            if p.read_bytes() != before.read_bytes():
                command(["show", "config", p], folder)
                command(["show", "checkpoint", p, "-n", r.choice((1, 8))], folder)


class Trace(Kind):
    """Traces in both forms."""

    def make(self):
        for form in ("chrome", "pfw"):
            args = tiny(self.tmp / "trace-data", self.tmp / f"trace-{form}", files=6, dataset__record_length_bytes=64, run__trace=form)
            made(["run", *args], self.tmp)
        self.base.mkdir()
        self.result = self.tmp / "trace-chrome"
        for p in (*(self.tmp / "trace-chrome").glob("trace*"), *(self.tmp / "trace-pfw").glob("trace*")):
            shutil.copy(p, self.base / p.name)

    def mutators(self, path):
        return (*BYTES, structure, structure, words, words)

    def read(self, folder, r):
        for p in sorted(folder.iterdir()):
            if p.read_bytes() != (self.base / p.name).read_bytes():
                report(self.result, self, "--trace", p) if r.random() < 0.9 else report(self.result, self, "--trace", p, "--steps", "1-3")


class Dataset(Kind):
    """A manifest and samples of every format."""
    formats = ("npz", "npy", "hdf5", "tfrecord", "png", "jpeg", "csv", "indexed_binary", "mmap_indexed_binary")

    def make(self):
        self.base.mkdir()
        for form in self.formats:
            args = tiny(self.base / form, None, fmt=form, files=2, dataset__record_length_bytes=300, workflow__train="false",
                        dataset__num_files_eval=0, framework="tensorflow" if form == "tfrecord" else "pytorch",
                        reader__data_loader="tensorflow" if form == "tfrecord" else "pytorch")
            made(["generate", *[a for a in args if not a.startswith("workflow.")]], self.tmp)

    def read(self, folder, r):
        for form in self.formats:
            if any(p.read_bytes() != (self.base / p.relative_to(folder)).read_bytes() for p in (folder / form).rglob("*") if p.is_file()):
                keys = tiny(folder / form, None, fmt=form, files=2, dataset__record_length_bytes=300, workflow__generate_data="false",
                            framework="tensorflow" if form == "tfrecord" else "pytorch", storage__store=r.choice(("posix", "mmap", "posix")),
                            reader__data_loader="tensorflow" if form == "tfrecord" else "pytorch")
                command(["verify", *keys], self.tmp)
                command(["run", *keys, "-o", folder / "out"], self.tmp)


# Epochs over files by a worker that is told by a pipe, and a checkpoint.
JOB = """
import os, sys
for i in range(4): open(f'{sys.argv[1]}/part{i}.npy', 'wb').write(bytes(3000))
for epoch in range(3):
    (ask, asks), (take, gives) = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(asks)
        while order := os.read(ask, 1):
            with open(f'{sys.argv[1]}/part{order[0]}.npy', 'rb') as f: os.write(gives, f.read()[:9])
        os._exit(0)
    os.close(ask)
    for i in (2, 0, 3, 1): os.write(asks, bytes([i])); os.read(take, 9)
    os.close(asks)
    os.wait()
    with open(f'{sys.argv[1]}/state.tmp', 'wb') as f: f.write(bytes(1 << 20)); os.fsync(f.fileno())
    os.rename(f'{sys.argv[1]}/state.tmp', f'{sys.argv[1]}/state.pt')
"""


class Recording(Kind):
    """The files of a recorded job."""
    how = BYTES

    def make(self):
        data = self.tmp / "recorded"
        data.mkdir()
        made(["record", "-o", self.base, "--", sys.executable, "-c", JOB, data], self.tmp)

    def mutators(self, path):
        return (*BYTES, cut, words)

    def read(self, folder, r):
        how = r.choice(([], ["-v"], ["--json"], ["-o", folder / "job.yaml"], ["-o", folder / "job.html"], ["replay"]))
        if how == ["replay"]:
            command(["replay", folder, "--data", folder.with_suffix(".image"), "--no-think", "--sparse"], self.tmp)
            shutil.rmtree(folder.with_suffix(".image"), ignore_errors=True)
        else:
            command(["explain", folder, *how], self.tmp)


MODEL = ["model.type=transformer", "model.num_layers=1", "model.transformer.vocab_size=10", "model.transformer.hidden_size=8",
         "model.transformer.ffn_hidden_size=8", "model.transformer.num_attention_heads=2", "model.transformer.num_kv_heads=1",
         "workflow.train=false", "workflow.evaluation=false", "workflow.checkpoint=true", "checkpoint.verify=true"]


class Checkpoint(Kind):
    """Checkpoints of every format, with their own integrity."""
    formats = ("torch", "safetensors", "distcp", "tensorflow")

    def keys(self, form, folder):
        return [*MODEL, f"checkpoint.format={form}", f"checkpoint.checkpoint_folder={folder}",
                "framework=tensorflow" if form == "tensorflow" else "framework=pytorch"]

    def make(self):
        self.base.mkdir()
        for form in self.formats:
            made(["run", "default", "-q", "-o", self.tmp / "ckpt-out", *self.keys(form, self.base / form),
                     "checkpoint.num_checkpoints_write=1", "checkpoint.num_checkpoints_read=0"], self.tmp)
        self.accepted = collections.Counter()

    def mutators(self, path):
        return (*BYTES, flip, flip, put)

    def mutate(self, folder, r):
        form = r.choice(self.formats)
        source = r.choice([p for p in self.files if p.relative_to(self.base).parts[0] == form])
        path = folder / source.relative_to(self.base)
        before = path.read_bytes()
        how = r.choice(self.mutators(path))
        after = how(r, before)
        path.unlink()
        path.write_bytes(after)
        self.form = form
        return [(path.relative_to(folder), how.__name__, before, after)]

    def read(self, folder, r):
        raise NotImplementedError

    def judge(self, folder, r, done):
        (path, how, before, after), form = done[0], done[0][0].parts[0]
        access = r.choice(("framework", "framework", "native"))
        end = command(["run", "default", "-q", "-o", folder / "out", *self.keys(form, folder / form), f"checkpoint.access={access}",
                       f"checkpoint.mmap={'true' if r.random() < 0.2 and access == 'framework' and form == 'torch' else 'false'}",
                       "checkpoint.num_checkpoints_write=0", "checkpoint.num_checkpoints_read=1"], self.tmp)
        if end.returncode == 0 and before != after:
            where = damage(form, path, before, after)
            for w in where:
                self.accepted[(form, w)] += 1
            if where - HARMLESS:
                raise Wrong(f"read back although damaged in {where - HARMLESS}")


# ---- why a damaged checkpoint is accepted ----

# Bytes of a torch.save archive that torch.load does not use, so that damage in them loses nothing. It takes the place and the
# size of a record from the directory, and from the local header only the lengths of what is before the data, which are checked.
# Everything else of every format is compared: tensors byte by byte, pickles by their CRC, headers, indexes and graphs as a whole.
HARMLESS = {"local header", "padding before the data", "descriptor behind the data", "entry of the directory", "end of the directory",
            "padding between records", "bytes of no record", "bytes behind the records"}


def parts_of_archive(data):
    """What each byte of a ZIP file as torch.save writes it is."""
    out = ["padding between records"] * len(data)
    z = zipfile.ZipFile(io.BytesIO(data))
    for i in z.infolist():
        at = i.header_offset
        name, extra = struct.unpack("<HH", data[at + 26:at + 30])
        begin = at + 30 + name + extra
        for a, b, what in ((at, at + 30 + name, "local header"), (at + 30 + name, begin, "padding before the data"),
                           (begin, begin + i.file_size, "record " + i.filename.split("/", 1)[-1]),
                           (begin + i.file_size, begin + i.file_size + 16, "descriptor behind the data")):
            out[a:b] = [what] * (b - a)
    at = z.start_dir
    while data[at:at + 4] == b"PK\1\2":
        size = 46 + sum(struct.unpack("<HHH", data[at + 28:at + 34]))
        out[at:at + size] = ["entry of the directory"] * size
        at += size
    out[at:] = ["end of the directory"] * (len(data) - at)
    return out


def records(data):
    """What a ZIP file holds, for another reader."""
    try:
        z = zipfile.ZipFile(io.BytesIO(data))
        return {n: z.read(n) for n in z.namelist()}
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError) as e:
        return str(e)


def damage(form, path, before, after):
    """Where a file that was accepted is damaged."""
    if len(before) != len(after) and path.suffix == ".pt" and records(before) == records(after):
        return {"bytes of no record"}
    if len(before) != len(after) and path.suffix == ".pt" and after.startswith(before[:zipfile.ZipFile(io.BytesIO(before)).start_dir]):
        return {"bytes behind the records"}
    if len(before) != len(after):
        return {f"{path.name}: {len(after)} bytes instead of {len(before)}"}
    parts, begin = [], 0
    while path.suffix in (".pt", ".distcp") and begin < len(before):
        # a file of distcp is one of torch.save after another
        end = before.index(b"PK\5\6", begin) + 22
        parts += parts_of_archive(before[begin:end])
        begin = end
    return {parts[i] if parts else f"{path.name} at {i}" for i in range(len(before)) if before[i] != after[i]}


KINDS = (Results, Sums, Dlio, Published, Study, Workload, Trace, Dataset, Checkpoint, Recording)
SHARES = {"Results": 5, "Sums": 1, "Dlio": 3, "Published": 1, "Study": 4, "Workload": 3, "Trace": 3, "Dataset": 2, "Checkpoint": 4, "Recording": 3}


def one(kind, n, seed, keep):
    r = random.Random(f"{seed}:{type(kind).__name__}:{n}")
    folder = kind.tmp / f"{type(kind).__name__}-{n}"
    twin(kind.base, folder)
    done = []
    try:
        done = kind.mutate(folder, r)
        if hasattr(kind, "judge"):
            kind.judge(folder, r, done)
        else:
            kind.read(folder, r)
    except (Wrong, ValueError) as e:
        if keep:
            shutil.copytree(folder, pathlib.Path(keep) / folder.name, dirs_exist_ok=True)
        why = f"--one {type(kind).__name__}:{n} --seed {seed}: {[(str(d[0]), d[1]) for d in done]}: {e}"
        print(why, flush=True)
        return why
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return None


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--count", type=int, default=100 if SANITIZED else 480)
    a.add_argument("--seed", type=int, default=14)
    a.add_argument("--only", default="")
    a.add_argument("--one", default="")
    a.add_argument("--keep", default="")
    a.add_argument("--jobs", type=int, default=2)
    a = a.parse_args()
    names = [a.one.split(":")[0]] if a.one else a.only.split(",") if a.only else list(SHARES)
    whole = sum(SHARES[k] for k in names)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as tmp:
        kinds = [k(pathlib.Path(tmp)) for k in KINDS if k.__name__ in names]
        if a.one:
            print(one(kinds[0], int(a.one.split(":")[1]), a.seed, a.keep))
            return
        jobs = [(k, n) for k in kinds for n in range(a.count * SHARES[type(k).__name__] // whole)]
        random.Random(a.seed).shuffle(jobs)
        with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
            wrong = [w for w in pool.map(lambda j: one(*j, a.seed, a.keep), jobs) if w]
    print(f"mutations: {len(jobs)} in {time.monotonic() - begin:.0f} s, " +
          ", ".join(f"{type(k).__name__} {sum(j[0] is k for j in jobs)}" for k in kinds) + f"; {len(wrong)} wrong")
    for k in kinds:
        for (form, where), n in sorted(getattr(k, "accepted", {}).items()):
            print(f"accepted: {form}: {where}: {n}")
    assert not wrong


if __name__ == "__main__":
    main()
