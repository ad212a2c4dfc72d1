"""kill -9 over `generate` at random moments: every file that has its name is whole, and the next command completes the
dataset as if nothing had happened, keeps what is there, and leaves nothing else.

Small files, which are synced and named in batches. Alone, and as processes of one run under mpirun, where they exist.

    test_kill_generate.py [-n KILLS] [-s SEED]
"""
# takes 30 s
import argparse
import hashlib
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

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "mpi"))
from util import SANITIZED, STOKER, left_out, stoker, tiny  # noqa: E402

KILLS = 40
FORMATS = {
    "npy": dict(files=3000, dataset__record_length_bytes=256, dataset__num_subfolders_train=3),
    "npz": dict(files=2500, dataset__record_length_bytes=400),
    "jpeg": dict(files=1500, dataset__record_length_bytes=900),
    "tfrecord": dict(files=2500, dataset__record_length_bytes=300, dataset__num_samples_per_file=2),
    "mmap_indexed_binary": dict(files=1000, dataset__record_length_bytes=256, dataset__num_subfolders_train=2),
}


def digests(folder):
    return {str(p.relative_to(folder)): hashlib.md5(p.read_bytes()).digest() for p in folder.rglob("*") if p.is_file()}


def without_manifest(files):
    return {name: d for name, d in files.items() if "manifest" not in name}


def launcher(processes):
    if processes == 1:
        return []
    for mpirun, more in ("mpirun.openmpi", ["--oversubscribe", "--allow-run-as-root"]), ("mpirun.mpich", []):
        if shutil.which(mpirun):
            return [mpirun, *more, "-n", str(processes)]
    return None


def descendants(pid):
    """Of the launcher: its processes, some of which are in sessions of their own."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, ask = [], [pid]
    while ask:
        below = children.get(ask.pop(), [])
        found += below
        ask += below
    return found


def kill_all(process):
    """Stops all first, so that none sees another one end."""
    pids = [process.pid, *descendants(process.pid)]
    for sig in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            try:
                os.kill(pid, sig)
            except ProcessLookupError:
                pass
    process.wait()
    # those that were adopted
    for pid in pids[1:]:
        for _ in range(1000):
            if not pathlib.Path(f"/proc/{pid}").exists() or " Z " in stat_of(pid):
                break
            time.sleep(0.01)


def command(data, fmt, keys, processes):
    return [*launcher(processes), STOKER, "generate", *map(str, tiny(data, None, fmt=fmt, **keys))]


def entries(folder):
    """Files and folders there, without a look at each."""
    return sum(len(dirs) + len(names) for _, dirs, names in os.walk(folder))


def wait_moment(process, data, whole, took, rng):
    """A random moment of the command: once some share of what is missing is there, or after some time, also one before it
    writes. How long it takes varies with what else the machine does."""
    if rng.random() < 0.3:
        time.sleep(rng.uniform(0, took))
        return
    there = entries(data)
    until = there + rng.random() * max(0, whole - there)
    while process.poll() is None and entries(data) < until:
        time.sleep(0.002)


def stat_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return " Z "


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=KILLS)
    parser.add_argument("-s", type=int, default=random.SystemRandom().randrange(10**6))
    args = parser.parse_args()
    rng = random.Random(args.s)
    print(f"seed {args.s}", flush=True)
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    sizes = [1, 3]
    if SANITIZED or launcher(3) is None:
        left_out("several processes: no mpirun")
        sizes = [1]
    # whoever kills a process leaves the page cache as it is: memory is as good as a disk
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as tmp:
        tmp = pathlib.Path(tmp)
        killed = kept = ended = parts = 0
        for fmt, keys in FORMATS.items():
            took = {}
            for n in sizes:
                begin = time.monotonic()
                subprocess.run(command(tmp / f"{fmt}-{n}", fmt, keys, n), check=True, env=env, stdout=subprocess.DEVNULL)
                took[n] = time.monotonic() - begin
            want = digests(tmp / f"{fmt}-1")
            assert without_manifest(digests(tmp / f"{fmt}-{sizes[-1]}")) == without_manifest(want)
            data = tmp / f"{fmt}-killed-0"
            for i in range(-(-args.n // len(FORMATS))):
                processes = sizes[i % 2] if len(sizes) > 1 and i % 4 == 1 else 1
                p = subprocess.Popen(command(data, fmt, keys, processes), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env,
                                     start_new_session=True)
                wait_moment(p, data, len(want), took[processes], rng)
                if p.poll() is None:
                    kill_all(p)
                    killed += 1
                else:
                    assert p.returncode == 0, p.stderr.read()
                    ended += 1
                p.stderr.close()
                there = without_manifest(digests(data)) if data.exists() else {}
                parts += len([n for n in there if n.endswith(".part")])
                wrong = [n for n, d in there.items() if d != want.get(n) and not re.search(r"(^|/)\.[^/]+(\.part|\.lock)$", n)]
                assert not wrong, f"{fmt}, {processes} processes: not whole under their names: {wrong[:5]}"
                # some are completed at once, others killed again
                if rng.random() < 0.5 or p.returncode == 0:
                    names = [n for n in there if n in want]
                    kept += len(names)
                    inodes = {n: (data / n).stat().st_ino for n in names}
                    stoker("generate", *tiny(data, None, fmt=fmt, **keys))
                    got = digests(data)
                    assert without_manifest(got) == without_manifest(want) and got.keys() == want.keys(), (
                        fmt, sorted(got.keys() ^ want.keys())[:5])
                    # companions have their names before their file has, and are made again with it
                    again = [n for n, inode in inodes.items() if (data / n).stat().st_ino != inode
                             and not n.endswith(".idx")]
                    assert not again, f"{fmt}, {processes} processes: {len(again)} of {len(names)} were made again: {again[:5]}"
                    stoker("verify", *tiny(data, None, fmt=fmt, **keys))
                    # nothing is removed now: for minutes ext4 gives no inode again, and looks at each
                    data = tmp / f"{fmt}-killed-{i + 1}"
        print(f"{killed} kills, {ended} ended before; {kept} whole files were kept, {parts} temporary files were seen", flush=True)
        assert killed >= args.n * 0.6, "too few were killed in time"


if __name__ == "__main__":
    main()
