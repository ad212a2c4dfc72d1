"""Many small files: each is durable before it has its name, which does not take a sync of its own.

The order of system calls is read from strace: every file's bytes are written, then synced - by an fsync of the file or
a syncfs of its file system -, and only then it is named. On file systems in a file (ext4, xfs, btrfs), in memory
(tmpfs), and where files cannot be without a name and syncfs is not relied upon (overlay).

    test_many_files.py [FILE SYSTEM...]
"""
# tier: long
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, STOKER, left_out, skip, stoker, tiny  # noqa: E402

FILES = 1000
SYNCS = 40  # of all files together, and for the manifest and folders
CALLS = "openat,pwrite64,fcntl,close,fsync,fdatasync,syncfs,rename,linkat"
BEGIN = re.compile(r"^(\d+) +(\w+)\((.*)$")
RETURNED = re.compile(r" += (-?\d+)[^=]*$")


def calls(trace):
    """(thread, name, arguments, None) where a call begins and (thread, name, arguments, returned) where it ends: what
    other threads do lies between."""
    pending = {}
    for line in trace.read_text(errors="replace").splitlines():
        pid = line.split(" ", 1)[0]
        m = re.match(r"^\d+ +<\.\.\. \w+ resumed>(.*)$", line)
        if m:
            what, args = pending.pop(pid)
            args += m.group(1)
        else:
            m = BEGIN.match(line)
            if not m:
                continue
            what, args = m.group(2), m.group(3)
            yield pid, what, args, None
            if line.endswith("<unfinished ...>"):
                pending[pid] = what, args[:-len("<unfinished ...>")].rstrip()
                continue
        m = RETURNED.search(args)
        if m:
            yield pid, what, args[:m.start()], int(m.group(1))


def traced(data, tmp, *options, status=0, **keys):
    trace = tmp / "trace"
    done = subprocess.run(["strace", "-f", "-o", trace, f"-etrace={CALLS}", *options, STOKER, "generate",
                           *map(str, tiny(data, None, **keys))], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return list(calls(trace)), done.stderr


def in_order(made, data):
    """Asserts that every file below `data` was synced after its last write and before its name; the names, and how many
    syncs there were. A file is what an open made; descriptors are shared by all threads."""
    dirty, synced, named, syncs, opened = set(), set(), [], 0, 0
    of = {}        # descriptor -> file
    covered = {}   # thread -> what its sync covers
    for thread, what, args, rc in made:
        fd = re.match(r"(\d+)", args)
        fd = int(fd.group(1)) if fd else None
        names = re.findall(r'"([^"]*)"', args)
        if rc is None:
            if what == "close":
                of.pop(fd, None)
            elif "write" in what and fd in of:
                dirty.add(of[fd])
                synced.discard(of[fd])
            elif what in ("fsync", "fdatasync", "syncfs"):
                syncs += 1
                covered[thread] = set(dirty) if what == "syncfs" else {of.get(fd)}
            elif what == "linkat" and names[-1].startswith(str(data)):
                proc = re.search(r'"/proc/self/fd/(\d+)"', args)
                file = of[int(proc.group(1)) if proc else fd]
                assert file in synced, f"{names[-1]} was named before {file} was synced"
            elif what.startswith("rename") and names[-1].startswith(str(data)):
                assert names[0] in synced, f"{names[-1]} was named before {names[0]} was synced"
        elif rc >= 0:
            if what == "openat":
                opened += 1
                of[rc] = f"unnamed {opened}" if "O_TMPFILE" in args else names[0]
            elif what == "fcntl" and "DUPFD" in args and fd in of:
                of[rc] = of[fd]
            elif what in ("fsync", "fdatasync", "syncfs"):
                dirty -= covered[thread]
                synced |= covered[thread]
            elif what in ("linkat", "rename") and names[-1].startswith(str(data)):
                named.append(names[-1])
    return named, syncs


def whole(data, **keys):
    stoker("verify", *tiny(data, None, **keys))


def check(name, data, tmp, most):
    for fmt, companions in ("npy", 0), ("npz", 0), ("mmap_indexed_binary", 2):
        files = FILES if fmt == "npy" else FILES // 4
        keys = dict(fmt=fmt, files=files, dataset__record_length_bytes=256, dataset__num_subfolders_train=3)
        folder = data / fmt
        made, _ = traced(folder, tmp, **keys)
        named, syncs = in_order(made, folder)
        named = [n for n in named if "manifest" not in n]
        assert len(set(named)) == len(named) == files * (1 + companions), (name, fmt, len(named))
        assert not list(folder.rglob(".*.part")), list(folder.rglob(".*.part"))
        assert most is None or syncs <= most, f"{name}, {fmt}: {syncs} syncs for {len(named)} files"
        print(f"{name}, {fmt}: {len(named)} files, {syncs} syncs", flush=True)
        whole(folder, **keys)
        # what is there is kept, whatever it lacks
        for path in sorted(folder.glob("train/*/img_*"))[::100]:
            path.unlink()
        stoker("generate", *tiny(folder, None, **keys))
        whole(folder, **keys)
        shutil.rmtree(folder)


def failures(name, data, tmp):
    """What the system refuses is a sentence with the file's name, nothing is left, and the next command completes it."""
    keys = dict(fmt="npy", files=800, dataset__record_length_bytes=256)
    # strace counts the calls of each thread
    for what, status in (("syncfs:error=EIO", 0), ("linkat:error=EINTR:when=20", 0), ("linkat:error=ENOSPC:when=50", 1),
                         ("pwrite64:error=EDQUOT:when=77", 1), ("syncfs:error=EIO -einject=fsync:error=EIO:when=40+", 1),
                         ("openat:error=EMFILE:when=150+", 1)):
        folder = data / "failing"
        made, err = traced(folder, tmp, *f"-einject={what}".split(), status=status, **keys)
        in_order(made, folder)
        there = len(list(folder.rglob("*.npy")))
        assert there == 800 if status == 0 else there < 800, (what, there)
        assert status == 0 or re.search(r"cannot write '\S+/img_\d+_of_800.npy': ", err), (what, err)
        assert not list(folder.rglob("*.part")), (what, list(folder.rglob("*.part")))
        stoker("generate", *tiny(folder, None, **keys))
        whole(folder, **keys)
        shutil.rmtree(folder)
    print(f"{name}: failures tell the file", flush=True)


@contextlib.contextmanager
def mounted(kind, tmp):
    """A folder on a file system of this kind; None where it cannot be had."""
    at = tmp / kind
    at.mkdir()
    steps, loop = [], None
    try:
        if kind == "overlay":
            (tmp / "below").mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "none", tmp / "below"], check=True, capture_output=True)
            steps.append(tmp / "below")
            for d in ("lower", "upper", "work"):
                (tmp / "below" / d).mkdir()
            subprocess.run(["mount", "-t", "overlay", "overlay", "-o", ",".join(
                f"{o}={tmp}/below/{d}" for o, d in (("lowerdir", "lower"), ("upperdir", "upper"), ("workdir", "work"))), at],
                check=True, capture_output=True)
        elif kind == "tmpfs":
            subprocess.run(["mount", "-t", "tmpfs", "none", at], check=True, capture_output=True)
        else:
            image = pathlib.Path("/dev/shm", f"stoker-many-{os.getpid()}.img")
            with open(image, "wb") as f:
                f.truncate(512 << 20)
            try:
                env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
                subprocess.run([f"mkfs.{kind}", *{"ext4": ["-q", "-F"], "xfs": ["-q"], "btrfs": ["-q"]}[kind], image],
                               check=True, capture_output=True, env=env)
                loop = subprocess.run(["losetup", "-f", "--show", image], check=True, capture_output=True, text=True,
                                      env=env).stdout.strip()
                subprocess.run(["mount", loop, at], check=True, capture_output=True)
            finally:
                image.unlink()
        steps.append(at)
    except (subprocess.CalledProcessError, OSError) as e:
        print(e, getattr(e, "stderr", ""))
    try:
        yield at if at in steps else None
    finally:
        for s in reversed(steps):
            subprocess.run(["umount", "-l", s], check=True)
        if loop:
            subprocess.run(["losetup", "-d", loop], check=True)


def main():
    if not shutil.which("strace"):
        skip("strace is not installed")
    if SANITIZED:
        skip("strace and the leak sanitizer exclude each other")
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        (tmp / "here").mkdir()
        for kind in sys.argv[1:] or ["ext4", "xfs", "btrfs", "tmpfs", "overlay"]:
            with mounted(kind, tmp) as at:
                if not at:
                    left_out(f"a file system of type {kind} could not be made and mounted")
                    continue
                check(kind, at / "data", tmp, None if kind == "overlay" else SYNCS)
                if kind == "ext4":
                    failures(kind, at / "data", tmp)


if __name__ == "__main__":
    main()
