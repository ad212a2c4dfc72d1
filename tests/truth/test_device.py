"""A real device held to 100 MiB/s: ext4 on a loop device whose backing file is in tmpfs, throttled by the
blkio controller. Measured AU within 4 points of the model, and the bytes the device delivered equal to
the bytes read. What misses is repeated at half the rate and twice the time of computing, then a quarter, so that
the lateness of a busy machine weighs less, and must be right in 3 of 4 attempts. Needs root, loop devices and cgroup v1 blkio; skipped with a reason elsewhere."""
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from told import told  # noqa: E402
from util import SANITIZED, STOKER, attempts, load, skip, stoker, tiny  # noqa: E402

MIB = 1 << 20
RATE = 100 * MIB
SIZE_MB = 700
CGROUP = "/sys/fs/cgroup/blkio/stoker-test"
IMAGE = f"/dev/shm/stoker-test-{os.getpid()}.img"


def sh(*argv, check=True):
    return subprocess.run(argv, check=check, capture_output=True, text=True).stdout.strip()


def set_up(mount):
    if os.geteuid() != 0:
        skip("a throttled loop device needs root")
    if not os.path.isdir("/sys/fs/cgroup/blkio"):
        skip("no cgroup v1 blkio controller to hold a device to a rate")
    for tool in ("losetup", "mkfs.ext4", "mount"):
        if not any(os.access(os.path.join(p, tool), os.X_OK)
                   for p in (os.environ["PATH"] + ":/sbin:/usr/sbin").split(":")):
            skip(f"{tool} is not installed")
    try:
        sh("truncate", "-s", f"{SIZE_MB}M", IMAGE)
        loop = sh("losetup", "-f", "--show", "--direct-io=on", IMAGE)
        sh("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", loop)
        sh("mount", loop, mount)
    except (subprocess.CalledProcessError, FileNotFoundError) as e:
        for left in sh("losetup", "-j", IMAGE, "-O", "NAME", "-n", check=False).split():
            sh("losetup", "-d", left, check=False)
        if os.path.exists(IMAGE):
            os.unlink(IMAGE)
        skip(f"no loop device could be made: {e}")
    os.makedirs(CGROUP, exist_ok=True)
    with open(f"/sys/block/{os.path.basename(loop)}/dev") as f:
        number = f.read().strip()
    # the file system's read-ahead would let one request ask for more than it needs
    with open(f"/sys/block/{os.path.basename(loop)}/queue/read_ahead_kb", "w") as f:
        f.write("0")
    return loop, number


def limit(number, rate):
    with open(f"{CGROUP}/blkio.throttle.read_bps_device", "w") as f:
        f.write(f"{number} {rate}\n")


def in_cgroup():
    with open(f"{CGROUP}/tasks", "w") as f:
        f.write(str(os.getpid()))


def tear_down(loop, mount):
    sh("umount", mount, check=False)
    sh("losetup", "-d", loop, check=False)
    os.unlink(IMAGE)
    try:
        os.rmdir(CGROUP)
    except OSError:
        time.sleep(0.5)
        os.rmdir(CGROUP)


def warm(mount):
    for path in glob.glob(f"{mount}/data/train/*"):
        with open(path, "rb") as f:
            while f.read(MIB):
                pass


def cold(mount):
    sh("sync")
    for path in glob.glob(f"{mount}/data/train/*"):
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        mount = os.path.join(tmp, "mnt")
        os.mkdir(mount)
        loop, number = set_up(mount)
        misses = 0
        try:
            side = 2048
            size = side * side + 128
            files = 96
            keys = dict(files=files, fmt="npy", dataset__record_length_bytes=side * side,
                        reader__access="native", reader__decode="none", reader__batch_size=1)
            data = f"{mount}/data"
            stoker("run", *tiny(data, f"{tmp}/gen", workflow__train="false", **keys))
            # what the run does itself against a warm page cache must be worth as much as evicting it here
            for name, ranks, threads, share, how in (
                    ("half the demand", 1, 2, 0.5, {}),
                    ("two ranks, cold", 2, 2, 0.7, {"storage__page_cache": "cold"}),
                    ("half, direct", 1, 2, 0.5, {"storage__store": "direct"}),
                    ("ample, drop behind", 1, 2, 1.6, {"storage__page_cache": "drop_behind"})):
                expected = 100.0 * min(1.0, share)

                def once(attempt):
                    rate = RATE >> min(attempt, 2)
                    limit(number, rate)
                    # demand per second = ranks * size / c; the device gives the rate
                    c = share * ranks * size / rate
                    out = f"{tmp}/{name.replace(' ', '-').replace(',', '')}-{attempt}"
                    warm(mount) if how else cold(mount)
                    argv = [STOKER, "run", *map(str, tiny(data, out, workflow__generate_data="false",
                                                          reader__read_threads=threads,
                                                          train__computation_time=c, **keys, **how)),
                            "-n", str(ranks)]
                    done = subprocess.run(argv, capture_output=True, text=True, timeout=200,
                                          preexec_fn=in_cgroup)
                    assert done.returncode == 0, done.stderr
                    result = load(out)
                    au = load(out, "summary.json")["metric"]["train_au_mean_percentage"]
                    device = result["training"]["device_read_bytes"]
                    asked = files * size
                    ok = abs(au - expected) <= 4 and abs(device - asked) <= 0.01 * asked
                    print(f"{name:19} expected {expected:6.1f} %, measured {au:6.1f} %; device "
                          f"{device / MIB:.1f} MiB, asked {asked / MIB:.1f} MiB {'' if ok else 'MISSED'}", flush=True)
                    told("Known answers", f"{name}: {ranks} rank{'s' * (ranks > 1)} with a device that gives {100 * share:.0f} % "
                         f"of what they need; AU must be {expected:.0f} %",
                         f"AU {au:.1f} %; {device / MIB:.1f} MiB from the device, {asked / MIB:.1f} MiB asked")
                    return ok, None

                ok, _ = attempts(name, once)
                misses += not ok
        finally:
            tear_down(loop, mount)
        if misses and SANITIZED:
            print("under a sanitizer the figures are only shown")
            return 0
        return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
