"""Every file that is written meets a full disk: the command ends with status 1 and a sentence that names the file, and no
half file has the final name.

First by a preloaded library (tests/preload/full_disk.c): making the file, its first byte, its middle, its last byte,
syncing, closing and renaming it fail, one after the other, with all other files well. Then on a real file system that is
full: a small tmpfs, a page less each time.

    test_full_disk.py [CASE...]
"""
# takes 25 s
import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, STOKER, left_out, skip, stoker, tiny  # noqa: E402

LIBRARY = pathlib.Path(os.environ.get("STOKER_TOOLS", "build/tests"), "libfull_disk.so")
HANGS = 60
PAGE = 4096
# of files that may have another length the next time
ENDS = {".html": "</html>\n", ".csv": "\n", ".pfw": ("}\n", "]\n"), ".yaml": "\n", ".bin": "end"}


class Wrong(Exception):
    pass


def need(condition, why):
    if not condition:
        raise Wrong(why)


class Case:
    """A command in a folder of its own."""

    def __init__(self, name, argv, prepare=None):
        self.name, self.argv, self.prepare = name, argv, prepare


def generate(fmt, **keys):
    return lambda shared, folder: ["generate", *tiny(folder / "data", None, fmt=fmt, files=2,
                                                     dataset__record_length_bytes=20000, **keys)]


def run(*more, **keys):
    return lambda shared, folder: ["run", *tiny(shared / "data", folder / "out", workflow__generate_data="false", files=4,
                                                **keys), *[m.format(folder=folder) for m in more]]


def checkpoint(fmt):
    return run("workflow.checkpoint=true", "checkpoint.steps_between_checkpoints=2", "model.model_size_bytes=50000",
               "checkpoint.checkpoint_folder={folder}/saved", f"checkpoint.format={fmt}")


def with_design(shared, folder):
    (folder / "config/workload").mkdir(parents=True)
    (folder / "config/workload/small.yaml").write_text(
        "model: {name: small}\nframework: pytorch\nworkflow: {generate_data: False, train: True}\n"
        "dataset: {data_folder: data/x, format: npz, num_files_train: 4, record_length_bytes: 4096}\n"
        "reader: {data_loader: pytorch, batch_size: 2, read_threads: 1}\ntrain: {epochs: 1, computation_time: 0.001}\n")
    (folder / "design.csv").write_text("model,epochs,processes,overrides,run\nsmall,1,1,,N\nsmall,1,2,,N\n")


def study(verb, *options):
    return lambda shared, folder: ["study", verb, folder / "design.csv", "--config-dir", folder / "config", "--results",
                                   folder / "results", "--scratch", folder / "scratch",
                                   *[o.format(folder=folder) for o in options]]


def report(shared, folder):
    return ["report", shared / "out", "-o", folder / "report.html", "--csv", folder / "runs.csv"]


FORMATS = {"npz": {}, "npy": {}, "hdf5": {}, "tfrecord": {}, "csv": {}, "png": {}, "jpeg": {}, "indexed_binary": {},
           "mmap_indexed_binary": {}}
CASES = [
    *[Case(f"generate {f}", generate(f, **keys)) for f, keys in FORMATS.items()],
    Case("generate direct", generate("npz", storage__store="direct")),
    Case("run", run(run__trace="both", workflow__profiling="true")),
    *[Case(f"checkpoint {f}", checkpoint(f)) for f in ("torch", "safetensors", "distcp", "tensorflow")],
    Case("report", report),
    Case("study", study("run"), prepare=with_design),
    Case("study status", study("status", "--svg", "{folder}/matrix.svg"), prepare=with_design),
    Case("study sbatch", study("sbatch", "-o", "{folder}/study.sbatch"), prepare=with_design),
]


def execute(case, shared, folder, **env):
    folder.mkdir(exist_ok=True)
    if case.prepare:
        case.prepare(shared, folder)
    try:
        done = subprocess.run([STOKER, *map(str, case.argv(shared, folder))], capture_output=True, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, env={**os.environ, **env}, timeout=HANGS)
    except subprocess.TimeoutExpired as e:
        raise Wrong(f"it hangs: {e.stderr}") from e
    return done.returncode, done.stderr


def preloaded(case, shared, folder, which, told):
    told.unlink(missing_ok=True)
    status, err = execute(case, shared, folder, LD_PRELOAD=str(LIBRARY), FULL_DISK=which, FULL_DISK_TOLD=str(told))
    return status, err, told.read_text().splitlines() if told.exists() else []


def points(told, folder):
    """(call, bytes, name) of every point where the disk may be full, in the order of the command."""
    calls = {}  # {name: {call: bytes}}
    for line in told:
        call, n, path = line.split(" ", 2)
        if path.startswith(f"{folder}/"):
            of = calls.setdefault(path[len(str(folder)) + 1:], {})
            of[call] = of.get(call, 0) + int(n)
    for name, of in calls.items():
        if re.search(r"/\.(stoker_\w+|study)\.lock$", name):
            continue  # who cannot take a lock does without
        for call in ("mkdir", "open", "sync", "rename"):
            if call in of:
                yield call, 0, name
        total = of.get("write", 0)
        if total:
            for at in sorted({0, total // 2, total - 1}):
                yield "write", at, name
        if total and "sync" not in of and "close" in of:
            yield "close", 0, name


def wholes(folder):
    """Files that have their final name: {name: size}."""
    return {str(p.relative_to(folder)): p.stat().st_size for p in folder.rglob("*")
            if p.is_file() and not p.name.endswith(".tmp")}


def final(name):
    """The name that a file has when it is whole."""
    return re.sub(r"\.([^/]+)\.part$", r"\1", name)


def intact(folder, name, whole):
    """Nothing has the final name, or something whole: as long as without a failure, or, where times are in it, a whole
    document. Logs are written as the command goes, and end early when it does."""
    path = folder / name
    if not path.exists() or path.suffix == ".log" or path.stat().st_size == whole.get(name):
        return
    text = path.read_text(errors="replace")
    try:
        ok = name.endswith(".json") and isinstance(json.loads(text), (dict, list))
    except ValueError:
        ok = False
    need(ok or text.endswith(ENDS.get(path.suffix, "no end is known")),
         f"{name} has {len(text)} of {whole.get(name)} bytes under its final name")


def judge(status, err, name, folder, whole):
    need(status >= 0, f"killed by signal {-status}: {err}")
    need(status == 1, f"status {status}: {err.strip()}")
    need("No space left" in err, f"no sentence that says so: '{err.strip()}'")
    if name:
        name = final(name)
        need(os.path.basename(name) in err, f"no sentence that names {name}: '{err.strip()}'")
        intact(folder, name, whole)


def one(case, shared, tmp, point, number, whole):
    call, at, name = point
    folder = tmp / f"{case.name}-{number}".replace(" ", "-")
    try:
        status, err, told = preloaded(case, shared, folder, f"{call}:{at}:/{folder.name}/{name}", tmp / f"told-{number}")
        if at > 0 and not any(line.startswith("failed ") for line in told):
            return None  # times in the file, and it is shorter now
        need(any(line.startswith("failed ") for line in told), "the call was not made")
        judge(status, err, None if call == "mkdir" else name, folder, whole)
        return None
    except Wrong as e:
        return f"{call} of {name} at {at}: {e}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def by_library(case, shared, tmp, pool):
    folder = tmp / f"{case.name}-base".replace(" ", "-")
    status, err, told = preloaded(case, shared, folder, "none", tmp / "told")
    assert status == 0, f"{case.name} fails without a failure: {err}"
    every = list(points(told, folder))
    whole = wholes(folder)
    shutil.rmtree(folder)
    assert every, f"{case.name} writes nothing"
    wrong = list(filter(None, pool.map(lambda x: one(case, shared, tmp, x[1], x[0], whole), enumerate(every))))
    print(f"{case.name}: {len({p[2] for p in every})} files and folders, {len(every)} points, {len(wrong)} findings",
          flush=True)
    for w in wrong:
        print(f"   {w}", flush=True)
    return len(wrong)


@contextlib.contextmanager
def tmpfs(tmp, options):
    mount = tmp / "small"
    mount.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", mount], check=True, capture_output=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", "-l", mount], check=True)


def used(folder):
    v = os.statvfs(folder)
    return v.f_blocks - v.f_bfree, v.f_files - v.f_ffree


def by_tmpfs(case, shared, tmp):
    """The same command on a file system with fewer and fewer pages, and fewer and fewer files."""
    with tmpfs(tmp, "size=64m") as mount:
        status, err = execute(case, shared, mount / "x")
        assert status == 0, err
        pages, files = used(mount)
        whole = wholes(mount / "x")
    wrong = []
    for options in [f"size={n * PAGE}" for n in range(2, pages, max(1, pages // 24))] + \
            [f"size=64m,nr_inodes={n}" for n in range(4, files, max(1, files // 8))]:
        with tmpfs(tmp, options) as mount:
            try:
                status, err = execute(case, shared, mount / "x")
                if status == 0 and used(mount)[0] < pages:
                    continue  # what the first run used for a moment
                # known before a byte is written, or found by a write
                need(status == 1 and re.search("No space left|are free|room for only", err), f"status {status}: {err.strip()}")
                for name in wholes(mount / "x"):
                    intact(mount / "x", name, whole)
            except OSError:
                continue  # not even its inputs have room
            except Wrong as e:
                wrong.append(f"tmpfs with {options}: {e}")
    print(f"{case.name} on a tmpfs, {pages} pages and {files} files: {len(wrong)} findings", flush=True)
    for w in wrong:
        print(f"   {w}", flush=True)
    return len(wrong)


def main():
    if SANITIZED:
        skip("the preloaded library is not built with a sanitizer")
    if not LIBRARY.exists():
        skip(f"{LIBRARY} was not built")
    parser = argparse.ArgumentParser()
    parser.add_argument("case", nargs="*")
    args = parser.parse_args()
    cases = [c for c in CASES if not args.case or any(a in c.name for a in args.case)]
    wrong = 0
    with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(2) as pool:
        tmp = pathlib.Path(tmp)
        shared = tmp / "shared"
        shared.mkdir()
        stoker("run", *tiny(shared / "data", shared / "out", files=4))
        for case in cases:
            wrong += by_library(case, shared, tmp, pool)
        with contextlib.suppress(subprocess.CalledProcessError, FileNotFoundError):
            with tmpfs(tmp, "size=1m"):
                pass
            for case in cases:
                if case.name in ("generate npz", "generate hdf5", "run", "checkpoint torch", "study", "report"):
                    wrong += by_tmpfs(case, shared, tmp)
            return 1 if wrong else 0
        left_out("a file system that is full: no tmpfs can be mounted")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
