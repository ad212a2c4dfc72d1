"""Outputs whose name is a link, a FIFO, a device, a descriptor or a folder: links are followed, what is no file is
written through, a folder is refused in one sentence, and so is what the command reads."""
import os
import pathlib
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER, stoker, tiny  # noqa: E402

DESIGN = "model,processes,overrides,run\nsmall,1,,N\n"
WORKLOAD = """model: {name: small}
framework: pytorch
dataset: {data_folder: data/x, format: npz, num_files_train: 8, record_length_bytes: 4096}
reader: {data_loader: pytorch, batch_size: 2, read_threads: 1}
train: {epochs: 1, computation_time: 0.001}
"""
left_out = []


def outputs(tmp):
    """Name of each output option: the command up to its value, and how what it writes begins."""
    study = ["d.csv", "--config-dir", "config"]
    return {
        "report -o": (["report", "out", "-o"], "<!doctype html>"),
        "report --csv": (["report", "out", "-o", tmp / "page.html", "--csv"], "model"),
        "study report -o": (["study", "report", "d.csv", "--results", "out", "-o"], "<!doctype html>"),
        "status --svg": (["study", "status", *study, "--svg"], "<svg "),
        "sbatch -o": (["study", "sbatch", *study, "-o"], "#!/bin/bash"),
    }


def begins(text, what):
    return text.lower().lstrip("\ufeff").startswith(what)


def links(name, command, what, d):
    target, link = d / "target", d / "link"
    target.write_text("old")
    target.chmod(0o640)
    (d / "hop").symlink_to("target")
    link.symlink_to(d / "hop")
    stoker(*command, link, cwd=d.parent)
    assert link.is_symlink() and (d / "hop").is_symlink(), f"{name}: the link was replaced"
    assert begins(target.read_text(), what), f"{name}: the target was not written"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640, f"{name}: the mode was lost"
    if os.getuid() == 0:
        os.chown(target, 1234, 4321)
        stoker(*command, link, cwd=d.parent)
        assert (target.stat().st_uid, target.stat().st_gid) == (1234, 4321), f"{name}: the owner was lost"
    (d / "deep").mkdir()
    (d / "dangling").symlink_to("deep/new")
    stoker(*command, d / "dangling", cwd=d.parent)
    assert (d / "dangling").is_symlink() and begins((d / "deep/new").read_text(), what), name
    (d / "nowhere").symlink_to("absent/new")
    (d / "loop").symlink_to("loop")
    for bad in ("nowhere", "loop"):
        done = stoker(*command, d / bad, cwd=d.parent, status=1)
        assert str(d / bad) in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
        assert (d / bad).is_symlink(), name
    assert not list(d.rglob("*.tmp")), list(d.rglob("*"))


def fifo(name, command, what, d):
    os.mkfifo(d / "fifo")
    reader = subprocess.Popen(["cat", d / "fifo"], stdout=subprocess.PIPE, text=True)
    try:
        stoker(*command, d / "fifo", cwd=d.parent)
        assert stat.S_ISFIFO((d / "fifo").lstat().st_mode), f"{name}: the FIFO was replaced"
        text = reader.communicate(timeout=60)[0]
    finally:
        reader.kill()
    assert begins(text, what), f"{name}: {text[:80]!r}"


def devices(name, command, d):
    for minor, status in ((3, 0), (7, 1)):  # as /dev/null and /dev/full, which stay out of danger
        node = d / f"device{minor}"
        try:
            os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
            os.close(os.open(node, os.O_WRONLY))
        except PermissionError:
            left_out.append(f"{name}: device nodes cannot be made here")
            return
        done = stoker(*command, node, cwd=d.parent, status=status)
        assert stat.S_ISCHR(node.lstat().st_mode), f"{name}: the device was replaced by a file"
        if status:
            assert "No space left on device" in done.stderr and str(node) in done.stderr, done.stderr


def descriptors(name, command, what, d):
    for path in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        assert what in stoker(*command, path, cwd=d.parent).stdout.lower(), (name, path)
    # a file that is open already is gone on with, not begun again
    with open(d / "appended", "w") as f:
        f.write("kept\n")
        f.flush()
        subprocess.run([STOKER, *map(str, command), f"/dev/fd/{f.fileno()}"], pass_fds=[f.fileno()], check=True,
                       capture_output=True, cwd=d.parent)
    text = (d / "appended").read_text()
    assert text.startswith("kept\n") and begins(text[5:], what), (name, text[:80])
    with open(d / "stdout", "w") as f:
        subprocess.run([STOKER, *map(str, command), "/dev/stdout"], stdout=f, check=True, cwd=d.parent,
                       stderr=subprocess.DEVNULL)
    assert what in (d / "stdout").read_text().lower(), name


def folders(name, command, d):
    (d / "folder").mkdir()
    (d / "to-folder").symlink_to("folder")
    for bad in ("folder", "to-folder"):
        done = stoker(*command, d / bad, cwd=d.parent, status=1)
        assert f"'{d / bad}'" in done.stderr and "is a folder" in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
    assert not list((d / "folder").iterdir())


def inputs(name, command, d):
    """What the command reads is not replaced, by whatever name it is called, nor written twice."""
    read = ["d.csv"] if "d.csv" in command else []
    read += [f"out/{x.name}" for x in (d.parent / "out").iterdir() if x.suffix == ".json"] if "out" in command else []
    read += ["config/workload/small.yaml"] if "--config-dir" in command else []
    for path in map(d.parent.__truediv__, read if "study report -o" != name else [x for x in read if x != "d.csv"]):
        was = path.read_bytes()
        hard, link = d / "hard", d / "to-input"
        hard.hardlink_to(path)
        link.symlink_to(path)
        for target in path, hard, link:
            err = stoker(*command, target, cwd=d.parent, status=2).stderr
            assert "this command reads it" in err and target.name in err, (name, err)
            assert path.read_bytes() == was and link.is_symlink(), f"{name}: {path} was overwritten"
        hard.unlink()
        link.unlink()
    if "--csv" in command:
        for one, two in (("twice", d / "twice"), ("page.html", d.parent / "page.html")):
            at = d if one == "twice" else d.parent
            err = stoker("report", d.parent / "out", "-o", one, "--csv", two, cwd=at, status=2).stderr
            assert "two outputs would be written to the same file" in err, err


def design(tmp):
    """The design is rewritten behind its link, and what cannot be rewritten is refused before anything runs."""
    real = tmp / "real.csv"
    real.write_text(DESIGN)
    real.chmod(0o600)
    (tmp / "d.csv").unlink()
    (tmp / "d.csv").symlink_to("real.csv")
    stoker("study", "run", "d.csv", "--config-dir", "config", cwd=tmp)
    assert (tmp / "d.csv").is_symlink() and real.read_text() == DESIGN.replace(",N\n", ",Y\n")
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    r, w = os.pipe()
    os.write(w, DESIGN.encode())
    os.close(w)
    done = stoker("study", "run", f"/dev/fd/{r}", "--config-dir", "config", "--results", "elsewhere", cwd=tmp,
                  pass_fds=[r], status=2)
    assert "not a regular file" in done.stderr and not (tmp / "elsewhere").exists(), done.stderr


def run_folders(tmp):
    """A dangling link for a folder of results: it is made where the link leads."""
    for name in ("results-link", "plots-link"):
        (tmp / name).symlink_to(f"made/deep/{name}")
    stoker("run", *tiny(tmp / "data", tmp / "results-link", files=4))
    assert (tmp / "results-link").is_symlink() and (tmp / "made/deep/results-link/result.json").exists()
    (tmp / "folder-loop").symlink_to("folder-loop")
    assert "folder-loop" in stoker("run", *tiny(tmp / "data", tmp / "folder-loop", files=4), status=1).stderr


def removed(tmp):
    """The folder of a run that is measuring is removed: the results are written all the same."""
    out = tmp / "removed"
    run = subprocess.Popen([STOKER, "run", *tiny(tmp / "data", out, files=4, train__epochs=20)],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not (out / "dlio.log").exists() or "Starting epoch" not in (out / "dlio.log").read_text():
        assert run.poll() is None, run.stderr.read()
        time.sleep(0.01)
    shutil.rmtree(out)
    text = run.communicate(timeout=60)[1]
    assert run.returncode == 0, text
    assert "complete" in (out / "result.json").read_text() and (out / "summary.json").exists()


def file_limits(tmp):
    """A limit of the size of files is an error of the file, in commands without measuring, too."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
    for command in outputs(tmp).values():
        path = tmp / "limited"
        done = subprocess.run([STOKER, *map(str, command[0]), path], cwd=tmp, preexec_fn=limit, capture_output=True,
                              text=True)
        if done.returncode != 0:
            assert done.returncode == 1 and "File too large" in done.stderr, (command, done.returncode, done.stderr)
            assert not path.exists(), command
        path.unlink(missing_ok=True)
    done = subprocess.run([STOKER, "report", "out", "-o", "limited"], cwd=tmp, preexec_fn=limit, capture_output=True)
    assert done.returncode == 1, done.returncode


with tempfile.TemporaryDirectory() as tmp:
    tmp = pathlib.Path(tmp)
    (tmp / "config/workload").mkdir(parents=True)
    (tmp / "config/workload/small.yaml").write_text(WORKLOAD)
    (tmp / "d.csv").write_text(DESIGN)
    stoker("run", *tiny(tmp / "data", tmp / "out", files=4))
    for number, (name, (command, what)) in enumerate(outputs(tmp).items()):
        d = tmp / f"output{number}"
        d.mkdir()
        links(name, command, what, d)
        fifo(name, command, what, d)
        devices(name, command, d)
        descriptors(name, command, what, d)
        folders(name, command, d)
        inputs(name, command, d)
    design(tmp)
    run_folders(tmp)
    removed(tmp)
    file_limits(tmp)
    for why in left_out:
        print(f"left out: {why}")
