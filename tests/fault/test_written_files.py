"""Every file that the program writes, in a folder where another user has prepared its name: a link to a victim (which
everyone may write), a hard link, a FIFO, a folder, a file of that user; a folder that cannot be written. The victim stays
as it is, nothing is waited for, and what does not work is a sentence and a status. Then locks and designs of two users.

A full disk under each file is in test_full_disk.py.

takes 40 s

    test_written_files.py [CASE...]
"""
# takes 24 s
import concurrent.futures
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, STOKER, skip, stoker, tiny  # noqa: E402

HANGS = 20 if not SANITIZED else 120
USER, OTHER = 65534, 65533
DESIGN = "model,epochs,processes,overrides,run\nsmall,1,1,,N\n"
SMALL = ("model: {name: small}\nframework: pytorch\nworkflow: {generate_data: False, train: True}\n"
         "dataset: {data_folder: data/x, format: npz, num_files_train: 4, record_length_bytes: 4096}\n"
         "reader: {data_loader: pytorch, batch_size: 2, read_threads: 1}\ntrain: {epochs: 1, computation_time: 0.001}\n")
SECRET = "of somebody else\n"


def with_design(folder):
    (folder / "config/workload").mkdir(parents=True)
    (folder / "config/workload/small.yaml").write_text(SMALL)
    (folder / "d.csv").write_text(DESIGN)
    for p in (folder, folder / "d.csv"):
        os.chown(p, USER, USER)


def generate(fmt):
    return ["generate", "default", "-q", *tiny("data", None, fmt=fmt, files=2, dataset__record_length_bytes=3000,
                                               reader__batch_size=1)[2:]]


def run(*more, **keys):
    return ["run", *tiny("../shared/data", "out", workflow__generate_data="false", files=4, **keys), *more]


STUDY = ["d.csv", "--config-dir", "config", "--results", "results", "--scratch", "scratch"]
# name: (command, what it needs, the files whose names somebody gave, which others must not have prepared at all)
CASES = {
    **{f"generate {f}": (generate(f), None, ()) for f in ("npz", "indexed_binary")},
    "run": (run("run.trace=both", workflow__profiling="true"), None, ()),
    **{f"checkpoint {f}": (run("workflow.checkpoint=true", "checkpoint.steps_between_checkpoints=2",
                               "model.model_size_bytes=3000", "checkpoint.checkpoint_folder=saved",
                               f"checkpoint.format={f}", "checkpoint.fsync=false"), None, ()) for f in
       ("torch", "distcp", "tensorflow")},
    "report": (["report", "../shared/out", "-o", "page.html", "--csv", "runs.csv"], None, ("page.html", "runs.csv")),
    "study": (["study", "run", *STUDY, "--quiet"], with_design, ("d.csv",)),
    "matrix": (["study", "status", *STUDY, "--svg", "m.svg"], with_design, ("m.svg",)),
    "batch": (["study", "sbatch", *STUDY, "-o", "b.sh"], with_design, ("b.sh",)),
}
# input, or made by a study and removed before it goes on
NOT_PREPARED = re.compile(r"^config/|^d\.csv$|^results/.*/run-1/|^scratch/|\.tmp$")


def execute(argv, folder, uid=USER):
    who = {} if uid == 0 else {"user": uid, "group": uid, "extra_groups": []}
    child = subprocess.Popen([str(folder.parent / "stoker"), *argv], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             text=True, errors="replace", stdin=subprocess.DEVNULL, cwd=folder, umask=0o022, **who)
    try:
        return child.returncode, child.communicate(timeout=HANGS)[1], child.wait()
    except subprocess.TimeoutExpired:
        child.kill()
        return None, child.communicate()[1], None


class Victim:
    """A file that everyone may write, so that only not following keeps it."""

    def __init__(self, folder):
        self.path = folder / "victim"
        self.path.write_text(SECRET)
        os.chown(self.path, OTHER, OTHER)
        self.path.chmod(0o666)
        self.stat = self.path.stat()

    def touched(self):
        now = self.path.stat()
        return self.path.read_text() != SECRET or \
            (now.st_uid, now.st_mode, now.st_ino) != (self.stat.st_uid, self.stat.st_mode, self.stat.st_ino)


def as_other(path):
    os.chown(path, OTHER, OTHER, follow_symlinks=False)


PREPARED = {
    "link to a victim": lambda p, v: (p.symlink_to(v.path), as_other(p)),
    "hard link": lambda p, v: os.link(v.path, p),
    "link to nothing": lambda p, v: (p.symlink_to(v.path.parent / "not-made"), as_other(p)),
    "FIFO": lambda p, v: (os.mkfifo(p, 0o666), p.chmod(0o666), as_other(p)),
    "file of another": lambda p, v: (p.write_text(SECRET), p.chmod(0o666), as_other(p)),
    "folder": lambda p, v: (p.mkdir(), as_other(p)),
}


def one(case, name, how, sticky, tmp, number):
    argv, prepare, named = CASES[case]
    folder = tmp / f"w{number}"
    folder.mkdir()
    victim = Victim(tmp / f"v{number}")
    try:
        if prepare:
            prepare(folder)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for p in [folder, *[q for q in path.parents if folder in q.parents]]:
            os.chown(p, 0, 0)
            p.chmod(0o1777 if sticky else 0o777)
        PREPARED[how](path, victim)
        _, err, status = execute(list(argv), folder)
        if status is None:
            return f"it hangs: {err[-200:]}"
        if status < 0 or status > 2:
            return f"status {status}: {err[-200:]}"
        if victim.touched():
            return f"the victim was written to (status {status})"
        if (victim.path.parent / "not-made").exists():
            return "a file was made behind the link"
        if status and not err.strip():
            return f"status {status} without a sentence"
        if status and how == "file of another" and path.exists() and path.read_text() != SECRET:
            return "the file of the other is half written"
        if status == 0 and os.path.lexists(path):
            st = path.lstat()
            # not to be had, and not needed: a lock, or a temporary name that was not used
            spare = path.name.endswith((".lock", ".part", ".tmp"))
            if not spare and (not stat.S_ISREG(st.st_mode) or st.st_uid != USER):
                whole = name.startswith("data/") and how == "file of another"
                return None if whole else f"status 0, and {name} is not ours"
        if status == 0 and name in named and sticky:
            return f"status 0, although another user had prepared {name}"
        left = [str(p) for p in folder.rglob("*.tmp") if p != path]
        return f"left: {left}" if left else None
    except OSError as e:
        return f"{type(e).__name__}: {e}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(victim.path.parent, ignore_errors=True)


def files_of(case, tmp):
    argv, prepare, named = CASES[case]
    folder = tmp / "base"
    folder.mkdir()
    folder.chmod(0o777)
    if prepare:
        prepare(folder)
    _, err, status = execute(list(argv), folder)
    assert status == 0, f"{case} fails untouched: {err}"
    names = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    shutil.rmtree(folder)
    names = {n for n in names if not NOT_PREPARED.search(n)} | {n for n in named if n != "d.csv"}
    for n in sorted(names):
        at = n.rfind("/") + 1
        if n.startswith("data/"):
            names.add(f"{n[:at]}.{n[at:]}.part")
        if n.startswith("saved/"):
            names.add(f"{n}.tmp")
    return sorted(names | {"data/.stoker_generate.lock"} if case.startswith("generate") else names |
                  {"out/.stoker_run.lock"} if case == "run" else names | {"results/.study.lock"} if case == "study" else names)


def read_only(case, tmp, number):
    """A folder that this user cannot write to."""
    argv, prepare, _ = CASES[case]
    folder = tmp / f"r{number}"
    folder.mkdir()
    if prepare:
        prepare(folder)
        os.chown(folder / "d.csv", 0, 0)
    os.chown(folder, 0, 0)
    folder.chmod(0o755)
    before = sorted(folder.rglob("*"))
    _, err, status = execute(list(argv), folder)
    if status not in (1, 2) or not err.strip() or sorted(folder.rglob("*")) != before:
        return f"{case} in a read-only folder: status {status}, {err.strip()!r}"
    return None


def locks(tmp):
    """Two users, one folder: the second one is told who is there, whatever the umask of the first."""
    for umask, sticky in ((0o022, True), (0o077, True), (0o077, False)):
        folder = tmp / "locks"
        folder.mkdir()
        folder.chmod(0o1777 if sticky else 0o777)
        data = folder / "data"
        data.mkdir()
        data.chmod(0o1777 if sticky else 0o777)
        argv = ["generate", "default", "-q", *tiny(data, None, fmt="npy", files=6)[2:]]
        slow = ["storage.store=fault+posix", "storage.fault.op=close", "storage.fault.nth=1", "storage.fault.count=0",
                "storage.fault.action=delay", "storage.fault.delay=0.4"]
        first = subprocess.Popen([str(tmp / "stoker"), *argv, *slow], user=OTHER, group=OTHER, extra_groups=[], umask=umask,
                                 cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        lock = data / ".stoker_generate.lock"
        until = time.monotonic() + 10
        while not (lock.exists() and lock.read_text()) and time.monotonic() < until:
            time.sleep(0.01)
        assert first.poll() is None and lock.exists(), first.communicate()[1]
        assert lock.stat().st_mode & 0o444 == 0o444, "others cannot see the lock"
        _, err, status = execute(argv, folder.parent / "locks")
        assert status == 1 and f"process {first.pid} " in err and str(lock) in err, (status, err)
        assert first.wait(timeout=60) == 0 and not lock.exists(), first.communicate()[1]
        # one that a killed program of the other user left holds nobody up, and is not written to in a sticky folder
        lock.write_text("process 1 on host 'gone'\n")
        as_other(lock)
        lock.chmod(0o644)
        for p in data.rglob("*"):
            p.chmod(0o777 if p.is_dir() else 0o644)
        _, err, status = execute(argv, folder.parent / "locks")
        assert status == 0, err
        assert not lock.exists() or lock.read_text() == "process 1 on host 'gone'\n"
        # unreadable: whether it is held cannot be known
        lock.unlink(missing_ok=True)
        lock.write_text("")
        os.chown(lock, OTHER, OTHER)
        lock.chmod(0)
        _, err, status = execute(argv, folder.parent / "locks")
        assert status == 1 and str(lock) in err, (status, err)
        shutil.rmtree(folder)


def design(tmp):
    """A design keeps mode and owner: of root rewritten by root, of another user by who may write it."""
    for uid, mode, rights in ((0, 0o640, 0o755), (USER, 0o666, 0o777), (USER, 0o666, 0o755)):
        folder = tmp / "design"
        folder.mkdir()
        with_design(folder)
        for name in ("results", "scratch"):
            (folder / name).mkdir()
            (folder / name).chmod(0o777)
        os.chown(folder, 0, 0)
        folder.chmod(rights)
        d = folder / "d.csv"
        d.write_text(DESIGN.replace("/x", "/y"))
        os.chown(d, OTHER, OTHER)
        d.chmod(mode)
        _, err, status = execute(["study", "run", *STUDY, "--quiet"], folder, uid)
        assert status == 0 and d.read_text().endswith(",Y\n"), (status, err, d.read_text())
        st = d.stat()
        assert (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)) == (OTHER, OTHER, mode), (uid, oct(st.st_mode), st.st_uid)
        shutil.rmtree(folder)


def main():
    if os.getuid() != 0:
        skip("files of two users cannot be made: not root")
    wanted = sys.argv[1:]
    wrong, total, files = [], 0, 0
    with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(3) as pool:
        tmp = pathlib.Path(tmp)
        tmp.chmod(0o755)
        shutil.copy(STOKER, tmp / "stoker")
        (tmp / "shared").mkdir()
        stoker("run", *tiny("data", "out", files=4), cwd=tmp / "shared")
        subprocess.run(["chmod", "-R", "a+rX", tmp / "shared"], check=True)
        if not wanted:
            locks(tmp)
            design(tmp)
        jobs, number = [], 0
        for case in CASES:
            if wanted and not any(w in case for w in wanted):
                continue
            names = files_of(case, tmp)
            files += len(names)
            for name in names:
                for how in PREPARED:
                    for sticky in (True, False):
                        number += 1
                        (tmp / f"v{number}").mkdir()
                        jobs.append((f"{case}: {name}, {how}{', sticky' if sticky else ''}",
                                     pool.submit(one, case, name, how, sticky, tmp, number)))
            why = read_only(case, tmp, number)
            wrong += [why] if why else []
        for what, job in jobs:
            total += 1
            if job.result():
                wrong.append(f"{what}: {job.result()}")
    for w in wrong:
        print(f"   {w}")
    print(f"{files} files, {total} attempts, {len(wrong)} findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
