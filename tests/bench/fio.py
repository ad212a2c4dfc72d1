"""Figures, not tests: cold random reads through the program against fio's, with the same engine, block
size, depth and file.

    python3 tests/bench/fio.py build/stoker [pairs [case...]]

Needs root and fio. The file system is ext4 on a loop device over a file in /dev/shm, of which it takes
1.6 GiB. One worker reads every block of one file once, in random order (indexed_binary, read_type
memory, access native, decode none), and so does fio with one job. fio's fadvise_hint is off, since no
framework gives the kernel such advice either. Both measure each request's latency. The program's looks at
the page cache before and after an epoch are off: they walk every page that was read, which fio never does.

Rate is bytes over the time of reading as each says it; CPU is the whole process with its kernel threads,
less what the same program takes to read one block. A round is fio, the program, fio again, and every other
round runs backwards, so that neither side always follows the same neighbour. Medians of the ratios to the
round's first fio. The second fio is the measure of the measuring: a ratio tells no more than how far that
one is from 1, and the standard error beside each median says how far chance alone takes it.
"""
import json
import os
import pathlib
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
STOKER = sys.argv[1] if len(sys.argv) > 1 else "build/stoker"
os.environ["STOKER"] = STOKER
from util import tiny  # noqa: E402

PAIRS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
ONLY = sys.argv[3:]
IMAGE = 1600 << 20
BYTES = {4096: 1 << 30, 131072: 1 << 30, 1 << 20: 1 << 30}

# name, block, depth, the program's store and its options, fio's engine and direct
CASES = [
    ("posix 128k", 131072, 1, "posix", {}, "psync", 0),
    ("posix 1m", 1 << 20, 1, "posix", {}, "psync", 0),
    ("direct 128k", 131072, 1, "direct", {}, "psync", 1),
    ("direct 1m", 1 << 20, 1, "direct", {}, "psync", 1),
    ("io_uring 128k depth 8", 131072, 8, "io_uring", {}, "io_uring", 0),
    ("io_uring 1m depth 8", 1 << 20, 8, "io_uring", {}, "io_uring", 0),
    ("io_uring direct 128k depth 8", 131072, 8, "io_uring", {"storage__io_uring__direct": "true"}, "io_uring", 1),
    ("io_uring direct 1m depth 8", 1 << 20, 8, "io_uring", {"storage__io_uring__direct": "true"}, "io_uring", 1),
    ("io_uring direct 4k depth 32", 4096, 32, "io_uring", {"storage__io_uring__direct": "true"}, "io_uring", 1),
    ("io_uring 4k depth 32", 4096, 32, "io_uring", {}, "io_uring", 0),
]


def run(argv):
    """The program's output and its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(a) for a in argv], check=False, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{argv}: {done.stderr or done.stdout}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def evict(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def keys(block, blocks, **more):
    base = dict(fmt="indexed_binary", files=1, dataset__num_samples_per_file=blocks,
                dataset__record_dims=f"[{block}]", reader__batch_size=max(1, min(blocks, (16 << 20) // block)),
                reader__read_type="memory", reader__access="native", reader__decode="none",
                reader__sample_shuffle="seed", train__computation_time=0, workflow__generate_data="false",
                storage__page_cache_files=0, dataset__verify_samples=0, run__probe="false")
    base.update(more)
    return base


def ours(tmp, data, path, case, blocks=None):
    name, block, depth, store, options, _, _ = case
    evict(path)
    all_blocks = BYTES[block] // block
    _, cpu = run([STOKER, "run", *tiny(data, tmp / "out", **keys(
        block, all_blocks, storage__store=store, reader__queue_depth=depth,
        train__total_training_steps=blocks or -1, **options))])
    epoch = json.loads((tmp / "out/result.json").read_text())["training"]["epochs"][0]
    return epoch["payload_bytes"] / epoch["wall_s"], cpu


def theirs(path, case, size):
    name, block, depth, _, _, engine, direct = case
    evict(path)
    out, cpu = run(["fio", "--name=b", f"--filename={path}", "--rw=randread", f"--bs={block}", f"--size={size}",
                    f"--ioengine={engine}", f"--direct={direct}", f"--iodepth={depth}", "--fadvise_hint=0",
                    "--readonly", "--thread", "--output-format=json"])
    read = json.loads(out)["jobs"][0]["read"]
    return read["io_bytes"] / (read["runtime"] / 1000), cpu


def middle(ratios):
    """The median, and its standard error as that of a normal sample's."""
    error = 1.2533 * statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else 0
    return f"{statistics.median(ratios):.3f} ±{error:.3f}"


def compare(tmp, data, path, case):
    block = case[1]
    idle_ours = min(ours(tmp, data, path, case, 1)[1] for _ in range(2))
    idle_theirs = min(theirs(path, case, block)[1] for _ in range(2))

    def fio():
        rate, cpu = theirs(path, case, BYTES[block])
        return rate, cpu - idle_theirs

    def stoker():
        rate, cpu = ours(tmp, data, path, case)
        return rate, cpu - idle_ours

    sides, rounds = (fio, stoker, fio), []
    for i in range(PAIRS):
        done = [side() for side in (sides if i % 2 == 0 else sides[::-1])]
        rounds.append(done if i % 2 == 0 else done[::-1])
    for which, name in ((1, case[0]), (2, "   fio again")):
        rate, cpu = ([r[which][k] / r[0][k] for r in rounds] for k in (0, 1))
        mid = [statistics.median(r[which][k] for r in rounds) for k in (0, 1)]
        base = [statistics.median(r[0][k] for r in rounds) for k in (0, 1)]
        print(f"{name:30} rate {middle(rate)} of fio's ({mid[0] / 2**20:.0f} and {base[0] / 2**20:.0f} MiB/s), "
              f"CPU {middle(cpu)} of fio's ({mid[1]:.2f} and {base[1]:.2f} s)", flush=True)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the mount must not outlive this
    stores = {line.split(None, 1)[0] for line in run([STOKER, "show", "stores"])[0].splitlines() if line.strip()}
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="stoker-fio-") as tmp:
        tmp = pathlib.Path(tmp)
        image, mount = tmp / "image", tmp / "mount"
        mount.mkdir()
        with open(image, "wb") as f:
            os.posix_fallocate(f.fileno(), 0, IMAGE)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", image], check=True)
        loop = subprocess.run(["losetup", "-f", "--show", image], check=True, capture_output=True,
                              text=True).stdout.strip()
        try:
            subprocess.run(["mount", loop, mount], check=True)
            data, made = mount / "data", None
            for case in CASES:
                if (ONLY and case[0] not in ONLY) or case[3] not in stores:
                    continue
                block = case[1]
                if made != block:
                    run(["rm", "-rf", data])
                    run([STOKER, "run", *tiny(data, tmp / "out", **keys(
                        block, BYTES[block] // block, workflow__generate_data="true", workflow__train="false"))])
                    made = block
                compare(tmp, data, data / "train/img_0_of_1.indexed_binary", case)
        finally:
            subprocess.run(["umount", mount], check=False)
            for _ in range(10):
                if subprocess.run(["losetup", "-d", loop], check=False).returncode == 0:
                    break
                time.sleep(0.2)


if __name__ == "__main__":
    main()
