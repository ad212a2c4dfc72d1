"""Every file that the program reads, but those of result folders, meets what else could have its name: a FIFO, a socket,
a folder, devices, a loop of links, a link to nothing, a file without rights; and it is empty, cut, or has one byte
changed. Never a crash, a hang, or status 0 with another answer.

takes 60 s

    test_read_files.py [KIND...]
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, STOKER, left_out, stoker, tiny  # noqa: E402

HANGS = 20 if not SANITIZED else 60
NOBODY = 65534
ROOT = os.getuid() == 0
CUTS = 20
DESIGN = "model,epochs,processes,overrides,run\nsmall,1,1,,Y\nsmall,1,2,,N\n"
SMALL = ("model: {name: small}\nframework: pytorch\nworkflow: {generate_data: False, train: True}\n"
         "dataset: {data_folder: data/x, format: npz, num_files_train: 4, record_length_bytes: 4096}\n"
         "reader: {data_loader: pytorch, batch_size: 2, read_threads: 1}\ntrain: {epochs: 1, computation_time: 0.001}\n")
FORMATS = ("npz", "npy", "hdf5", "tfrecord", "csv", "png", "jpeg", "indexed_binary", "mmap_indexed_binary", "parquet",
           "webdataset", "mds", "litdata")
CHECKPOINTS = ("torch", "safetensors", "distcp", "tensorflow")


class Kind:
    """A file and a command that reads it, both in a folder of their own.

    free: what is in the file may be anything of its grammar, so that a shorter or other one may be as good (a cut YAML is
    a YAML); only crashes and hangs count then. unread: its content does not matter at all (a lock file)."""

    def __init__(self, name, path, argv, prepare, free=False, unread=False, every=1, exits=(1, 2)):
        self.name, self.path, self.argv, self.make = name, path, argv, prepare
        self.free, self.unread, self.every, self.exits = free, unread, every, exits


def data(fmt, **keys):
    return tiny("data", None, fmt=fmt, files=2, dataset__record_length_bytes=3000, **keys)[2:]


def dataset(fmt, files=2):
    return lambda: stoker("generate", "default", "-q", *data(fmt), f"dataset.num_files_train={files}", cwd=HERE.folder)


class HERE:
    folder = None  # the folder in which a kind is prepared


def write(name, text):
    path = HERE.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def with_study():
    write("config/workload/small.yaml", SMALL)
    write("d.csv", DESIGN.replace("Y", "N"))
    stoker("study", "run", "d.csv", "--config-dir", "config", "--results", "results", "--scratch", "scratch", "--quiet",
           cwd=HERE.folder)


def with_result(*more, **keys):
    def make():
        stoker("run", *tiny("data", "out", files=4, **keys), *more, cwd=HERE.folder)
    return make


def checkpoint(fmt, folder=None):
    keys = ["workflow.train=false", "workflow.generate_data=false", "workflow.checkpoint=true", f"checkpoint.format={fmt}",
            "checkpoint.checkpoint_folder=saved", "model.model_size_bytes=3000", "checkpoint.fsync=false"]
    return [*tiny("data", folder, files=2)[:2], *(["-o", folder] if folder else []),
            *tiny("data", None, files=2)[2:], *keys]


def saved(fmt):
    return lambda: stoker("run", *checkpoint(fmt, "out0"), "checkpoint.num_checkpoints_write=1",
                          "checkpoint.num_checkpoints_read=0", cwd=HERE.folder)


STATUS = ["study", "status", "d.csv", "--config-dir", "config", "--results", "results", "--scratch", "scratch"]
KINDS = [
    Kind("workload", "w.yaml", ["show", "config", "./w.yaml"], lambda: write("w.yaml", SMALL), free=True),
    Kind("workload of a folder", "config/workload/small.yaml", ["show", "config", "small", "--config-dir", "config"],
         lambda: write("config/workload/small.yaml", SMALL), free=True, every=2),
    Kind("workload before a built-in", "config/workload/unet3d_h100.yaml",
         ["show", "config", "unet3d_h100", "--config-dir", "config"],
         lambda: write("config/workload/unet3d_h100.yaml", SMALL), free=True, every=2),
    Kind("workload of a defaults list", "config/workload/base.yaml", ["show", "config", "small", "--config-dir", "config"],
         lambda: (write("config/workload/base.yaml", SMALL),
                  write("config/workload/small.yaml", "defaults:\n  - base\n  - _self_\nreader: {batch_size: 4}\n")),
         free=True, every=2),
    Kind("saved workload", "out/.hydra/config.yaml", ["show", "config", "out/.hydra/config.yaml"], with_result(), free=True,
         every=4),
    Kind("design", "d.csv", STATUS, with_study, free=True),
    Kind("workload of a design", "config/workload/small.yaml", STATUS, with_study, free=True, every=4, exits=(0, 1, 2)),
    Kind("state of a study", "results/d.csv.study.json", STATUS, with_study),
    Kind("mark of a run", None, STATUS, with_study),
    Kind("manifest of verify", "data/stoker_manifest.json", ["verify", "data"], dataset("npz", 8)),
    Kind("manifest of a run", "data/stoker_manifest.json",
         ["run", "default", "-q", "-o", "out", *data("npz", workflow__generate_data="false")], dataset("npz"), free=True),
    Kind("manifest of --data", "data/stoker_manifest.json", ["run", "default", "-q", "-o", "out", "--data", "data", "train.epochs=1", "train.computation_time=0.001"],
         dataset("npz", 8), free=True, every=2),
    *[Kind(f"samples {f}", None, ["verify", "default", *data(f)], dataset(f), every=2) for f in FORMATS],
    *[Kind(f"samples {f} of a run", None, ["run", "default", "-q", "-o", "out", *data(f, workflow__generate_data="false")],
           dataset(f), every=4, free=True) for f in FORMATS],
    *[Kind(f"samples by {s}", None, ["run", "default", "-q", "-o", "out",
                                     *data("npy", workflow__generate_data="false", storage__store=s)], dataset("npy"),
           every=20, free=True) for s in ("direct", "io_uring", "mmap")],
    Kind("samples of --data", None,
         ["run", "default", "-q", "-o", "out", "--data", "data", "reader.batch_size=1", "train.epochs=1",
          "train.computation_time=0.001", "workflow.evaluation=false"],
         lambda: (dataset("npz")(), (HERE.folder / "data/stoker_manifest.json").unlink()), every=4, free=True),
    Kind("offsets", None, ["verify", "default", *data("indexed_binary")], dataset("indexed_binary"), every=2),
    *[Kind(f"index of {f}", "data/train/index.json", ["verify", "default", *data(f)], dataset(f), every=2) for f in ("mds", "litdata")],
    *[Kind(f"index of {f} of a run", "data/train/index.json",
           ["run", "default", "-q", "-o", "out", *data(f, workflow__generate_data="false")], dataset(f), every=4, free=True)
      for f in ("mds", "litdata")],
    Kind("sizes", None, ["verify", "default", *data("indexed_binary")], dataset("indexed_binary"), every=2),
    *[Kind(f"checkpoint {f}", None,
           ["run", *checkpoint(f, "out"), "checkpoint.num_checkpoints_write=0", "checkpoint.num_checkpoints_read=1"],
           saved(f), every=2, free=True) for f in CHECKPOINTS],
    Kind("repetitions", "out/repeat.json", ["compare", "out", "out"],
         lambda: stoker("run", *tiny("data", "out", files=4), "--repeat", "2", cwd=HERE.folder), every=2),
    Kind("trace", "t.json", ["report", "out", "-o", "page.html", "--trace", "t.json"],
         lambda: (with_result("run.trace=chrome")(), shutil.copy(HERE.folder / "out/trace.json", HERE.folder / "t.json")),
         every=4, free=True),
    Kind("lock of a dataset", "data/.stoker_generate.lock", ["generate", "default", "-q", *data("npz")],
         lambda: (dataset("npz")(), write("data/.stoker_generate.lock", "process 1 on host 'gone'\n")), unread=True, every=10),
    Kind("lock of a run", "out/.stoker_run.lock",
         ["run", "default", "-q", "-o", "out", *data("npz", workflow__generate_data="false")],
         lambda: (dataset("npz")(), write("out/.stoker_run.lock", "process 1 on host 'gone'\n")), unread=True, every=10),
    Kind("lock of a study", "results/.study.lock", ["study", "run", *STATUS[2:], "--quiet"],
         lambda: (with_study(), write("results/.study.lock", "process 1 on host 'gone'\n")), unread=True, every=10),
]


def found(name, folder):
    """The file of a kind whose path depends on the run."""
    pattern = {"mark of a run": "results/**/study_run.json", "offsets": "data/train/*.off.idx",
               "sizes": "data/train/*.sz.idx"}.get(name, "saved/**/*" if name.startswith("checkpoint") else "data/train/*")
    files = sorted(p for p in folder.glob(pattern) if p.is_file() and not (name.startswith("samples") and
                                                                           p.name.endswith((".idx", ".json"))))
    assert files, (name, pattern, list(folder.rglob("*")))
    return max(files, key=lambda p: p.stat().st_size) if name.startswith("checkpoint") else files[0]


# ---- what else has the name ----

def bind(path):
    here = os.open(path.parent, os.O_PATH)
    s = socket.socket(socket.AF_UNIX)
    s.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)
    s.close()


def device(major, minor, kind=stat.S_IFCHR):
    return lambda path: os.mknod(path, 0o666 | kind, os.makedev(major, minor))


OTHERS = {
    "FIFO": os.mkfifo, "socket": bind, "folder": os.mkdir, "/dev/null": device(1, 3), "/dev/zero": device(1, 5),
    "/dev/tty": device(5, 0), "loop device": device(7, 250, stat.S_IFBLK), "loop of links": lambda p: p.symlink_to(p.name),
    "link to nothing": lambda p: p.symlink_to("nothing-is-here"), "link to a FIFO": None, "no rights": None,
}


def mutations(path, content, every):
    """(name, what makes it, whether it is no readable file)"""
    for name, make in OTHERS.items():
        if make is None or (make.__name__ == "<lambda>" and "device" in make.__qualname__ and not ROOT):
            continue
        yield name, lambda make=make: make(path), True

    def link():
        os.mkfifo(path.parent / "behind.fifo")
        path.symlink_to("behind.fifo")
    yield "link to a FIFO", link, True

    def no_rights():
        path.write_bytes(content)
        path.chmod(0)
    if ROOT:
        yield "no rights", no_rights, True
    yield "empty", lambda: path.write_bytes(b""), False
    for at in sorted({len(content) * i // (CUTS + 1) for i in range(1, CUTS + 1, every)} | {max(0, len(content) - 1)}):
        yield f"cut at {at}", lambda at=at: path.write_bytes(content[:at]), False
    for at in sorted({len(content) // 7, len(content) // 2, len(content) * 9 // 10}):
        changed = bytearray(content)
        changed[at] ^= 0x5a
        yield f"byte {at} changed", lambda changed=changed: path.write_bytes(changed), False


def remove(path):
    for p in (path, path.parent / "behind.fifo"):
        if p.is_dir() and not p.is_symlink():
            p.rmdir()
        elif os.path.lexists(p):
            p.unlink()


# ---- one attempt ----

def execute(kind, folder, **how):
    begin = time.monotonic()
    if kind.argv[0] in ("run", "generate", "study"):
        for p in ("out", "scratch"):
            if p != kind.path.split("/")[0]:
                shutil.rmtree(folder / p, ignore_errors=True)
    child = subprocess.Popen([str(folder.parent / "stoker"), *map(str, kind.argv)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, errors="replace", stdin=subprocess.DEVNULL, cwd=folder, **how)
    try:
        out, err = child.communicate(timeout=HANGS * 3)
    except subprocess.TimeoutExpired:
        child.kill()
        return None, "", f"it hangs: {child.communicate()[1][-300:]}"
    if time.monotonic() - begin > HANGS * 2:
        return None, out, f"it takes {time.monotonic() - begin:.1f} s"
    return child.returncode, out, err


def answer(out):
    """Without times and measured figures."""
    return re.sub(r"[\d.]+", "N", re.sub(r"\d+ files?, .*/s:", "", out))


def judge(kind, name, irregular, status, out, err, good):
    if status is None:
        return err
    if status < 0 or "Sanitizer" in err:
        return f"killed by signal {-status}: {err[-300:]}"
    if status == 0:
        if irregular and 0 not in kind.exits:
            return f"status 0: {out[-200:]}"
        if not irregular and not kind.free and not kind.unread and answer(out) != good:
            return f"status 0 with another answer: {out[-200:]!r}"
        return None
    if status not in (1, 2):
        return f"status {status}: {err[-300:]}"
    if not err.strip():
        return f"status {status} without a sentence"
    base = os.path.basename(kind.path)
    if irregular and base not in err and os.path.splitext(base)[0] not in err and not re.search("training files", err):
        return f"no sentence that names {base}: {err[-300:]!r}"
    return None


def one_kind(kind, folder):
    path = folder / kind.path
    content = path.read_bytes()
    status, out, err = execute(kind, folder)
    if status != 0:
        return 1, [f"{kind.name}: fails untouched: {err or out}"]
    if not path.exists():
        path.write_bytes(content)  # a lock
    good, wrong, n = answer(out), [], 0
    subprocess.run(["chmod", "-R", "a+rwX", folder], check=True)
    for name, make, irregular in mutations(path, content, kind.every):
        remove(path)
        make()
        as_other = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if name == "no rights" else {}
        status, out, err = execute(kind, folder, **as_other)
        why = judge(kind, name, irregular, status, out, err, good)
        n += 1
        if why:
            wrong.append(f"{kind.name}, {name}: {why}")
        if as_other:
            subprocess.run(["chmod", "-R", "a+rwX", folder], check=True)
        remove(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return n, wrong


def interrupted(tmp):
    """The first Ctrl-C ends a program that waits for its input."""
    for argv in (["show", "config", "/dev/stdin"], ["study", "status", "/dev/stdin"], ["run", "/dev/stdin"]):
        child = subprocess.Popen([STOKER, *argv], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, cwd=tmp)
        time.sleep(0.3)
        assert child.poll() is None, f"{argv} does not wait for its input"
        child.send_signal(2)
        assert child.wait(timeout=HANGS) != 0
        child.stdin.close()


def main():
    if not ROOT:
        left_out("devices and files without rights: not root here")
    wanted = sys.argv[1:]
    wrong, total = [], 0
    with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(3) as pool:
        tmp = pathlib.Path(tmp)
        tmp.chmod(0o755)
        shutil.copy(STOKER, tmp / "stoker")
        interrupted(tmp)
        kinds = [k for k in KINDS if not wanted or any(w in k.name for w in wanted)]
        jobs = []
        for number, kind in enumerate(kinds):
            HERE.folder = tmp / str(number)
            HERE.folder.mkdir()
            try:
                kind.make()
            except AssertionError as e:
                if "storage" not in kind.name:
                    raise
                left_out(f"{kind.name}: {e}")
                continue
            kind.path = kind.path or str(found(kind.name, HERE.folder).relative_to(HERE.folder))
            jobs.append(pool.submit(one_kind, kind, HERE.folder))
        for kind, job in zip(kinds, jobs):
            n, bad = job.result()
            total += n
            wrong += bad
            print(f"{kind.name} ({kind.path}): {n} attempts, {len(bad)} findings", flush=True)
    for w in wrong:
        print(f"   {w}")
    print(f"{len(kinds)} files, {total} attempts, {len(wrong)} findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
