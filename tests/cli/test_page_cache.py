"""What a run says of the page cache, against fincore(1) or mincore(2) asked from outside; eviction,
drop-behind and O_DIRECT by their effect on it."""
# tier: long
import ctypes
import mmap
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from reclaimed import cached as cached_of  # noqa: E402
from util import attempts, left_out, load, skip, stoker, tiny, wait_for  # noqa: E402

PAGE = mmap.PAGESIZE
MIB = 1 << 20
MEMORY = ("tmpfs", "ramfs")


def file_system(path):
    return subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True).stdout.strip()


def disk_folder():
    for root in (os.environ.get("TMPDIR", "/tmp"), "/tmp", "/var/tmp", os.getcwd()):
        if os.access(root, os.W_OK) and file_system(root) not in MEMORY:
            return root
    skip("every folder here lies in memory")


def resident(path):
    """Bytes of a file in the page cache, in whole pages."""
    size = os.path.getsize(path)
    if shutil.which("fincore"):
        done = subprocess.run(["fincore", "-n", "-r", "-b", "-o", "RES", path], capture_output=True, text=True)
        if done.returncode == 0:
            return int(done.stdout)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    fd = os.open(path, os.O_RDONLY)
    at = libc.mmap(None, size, 1, 1, fd, 0)
    os.close(fd)
    seen = (ctypes.c_ubyte * ((size + PAGE - 1) // PAGE))()
    assert libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(size), seen) == 0
    libc.munmap(ctypes.c_void_p(at), ctypes.c_size_t(size))
    return sum(b & 1 for b in seen) * PAGE


class Rig:
    def __init__(self, tmp, **keys):
        self.data, self.out = tmp / "data", tmp / "out"
        self.keys = dict(files=24, dataset__record_length_bytes=MIB, reader__batch_size=4, reader__read_threads=2,
                         train__epochs=3, train__computation_time=0.002, dataset__num_subfolders_train=2, **keys)
        stoker("generate", *tiny(self.data, None, **self.keys))
        self.files = sorted((self.data / "train").rglob("*.*"))
        self.bytes = sum(f.stat().st_size for f in self.files)
        assert len(self.files) == 24

    def run(self, status=0, **keys):
        args = tiny(self.data, self.out, **{**self.keys, **keys}, workflow__generate_data="false")
        done = stoker("run", "-v", *args, status=status)
        if status:
            return done
        self.result = load(self.out)
        self.text = done.stdout
        self.io = [e["process_io"] for e in self.result["training"]["epochs"]]
        return [e["page_cache"] for e in self.result["training"]["epochs"]]

    def verdict(self, name):
        found = [v for v in self.result["verdicts"] if v["check"] == name]
        assert len(found) == 1, self.result["verdicts"]
        return found[0]["level"], found[0]["text"]

    def resident(self):
        return sum(resident(f) for f in self.files)

    def evict(self):
        """A page that the kernel has in hand stays for a moment."""
        def evicted():
            for f in self.files:
                with open(f) as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return self.resident() == 0
        assert wait_for(evicted, 10)

    def reclaimed(self):
        """Bytes that the kernel took back: some machines do with idle pages. What was there is these and those there."""
        return sum((cached_of(f) or (0, 0))[1] for f in self.files)

    def warm(self):
        for f in self.files:
            f.read_bytes()
        assert self.resident() + self.reclaimed() > 0.95 * self.bytes

    def check_now(self, epoch, when):
        """What the run said last against what is there now, but for what the kernel took back since."""
        now, said = self.resident(), epoch[f"cached_{when}_bytes"]
        since = self.reclaimed() - epoch.get(f"reclaimed_{when}_bytes", 0)
        assert abs(now + since - said) <= 0.05 * self.bytes, (now, since, epoch, self.bytes)

    def whole(self, epoch, when):
        """Whether all of the dataset was cached, or would have been without the kernel."""
        return epoch[f"cached_{when}_bytes"] + epoch.get(f"reclaimed_{when}_bytes", 0) > 0.95 * self.bytes


def keep(rig):
    rig.warm()
    cache = rig.run()
    for c in cache:
        assert c["files"] == c["files_looked_at"] == 24 and c["bytes_looked_at"] == rig.bytes, c
        assert rig.whole(c, "at_start") and "eviction_s" not in c, c
    rig.check_now(cache[-1], "at_end")
    level, text = rig.verdict("cache")
    assert level == "warn" and "memory was measured, not storage" in text, text
    assert "of the dataset before epoch 1" in rig.text
    print("   keep: warm is said to be warm")


def cold(rig):
    rig.warm()
    cache = rig.run(storage__page_cache="cold")
    assert rig.whole(cache[0], "before_eviction"), cache
    assert cache[0]["cached_at_start_bytes"] == 0, cache
    assert rig.whole(cache[1], "at_start"), cache
    rig.check_now(cache[-1], "at_end")
    assert rig.io[0] is None or rig.io[0]["device_read_bytes"] >= 0.9 * rig.bytes, rig.io
    level, text = rig.verdict("cache")
    assert level == "warn" and "before epoch 2" in text, text

    cache = rig.run(storage__page_cache="cold_epochs")
    for c, io in zip(cache, rig.io):
        assert rig.whole(c, "before_eviction") and c["cached_at_start_bytes"] == 0, cache
        assert rig.whole(c, "at_end"), cache
        assert io is None or io["device_read_bytes"] >= 0.9 * rig.bytes, io
    rig.check_now(cache[-1], "at_end")
    level, text = rig.verdict("cache")
    assert level == "pass", text
    print("   cold, cold_epochs: each epoch that should began without a page")


def dirty(rig):
    """Pages that were never written out leave, too."""
    for f in rig.files:
        body = f.read_bytes()
        with open(f, "r+b") as out:
            out.write(body)
    cache = rig.run(storage__page_cache="cold", train__epochs=1)
    assert cache[0]["cached_at_start_bytes"] == 0, cache
    print("   dirty pages were written out and evicted")


def held(rig):
    """Somebody maps the files: eviction cannot work, and the result says so."""
    maps = []
    for f in rig.files:
        with open(f, "rb") as file:
            m = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            m[::PAGE]
            maps.append(m)
    cache = rig.run(storage__page_cache="cold", train__epochs=1)
    rig.check_now(cache[0], "at_start")
    assert rig.whole(cache[0], "at_start"), cache
    level, text = rig.verdict("cache")
    assert level == "fail" and "before epoch 1" in text, text
    print("   files that another process maps: FAIL")


def drop_behind(rig):
    def once(keys):
        rig.warm()
        cache = rig.run(storage__page_cache="drop_behind", **keys)
        for c, io in zip(cache, rig.io):
            assert c["cached_at_start_bytes"] == 0 and c["cached_at_end_bytes"] < 0.02 * rig.bytes, cache
            assert io is None or io["device_read_bytes"] >= 0.9 * rig.bytes, io
        # a page that the kernel has in hand when it is to be dropped stays, and is said to
        clean = not any(c["cached_at_end_bytes"] for c in cache)
        level, text = rig.verdict("cache")
        assert ("Of the dataset, 0 B" in text) == clean and (level == "pass" or not clean), (text, cache)
        return clean and rig.resident() == 0, cache

    for keys in ({}, {"storage__store": "mmap"}, {"storage__store": "throttle+posix"}):
        right, cache = attempts(f"drop_behind {keys}", lambda _, keys=keys: once(keys))
        assert right, cache
    assert rig.result["configuration"]["storage.store"]["value"] == "drop_behind+throttle+posix"
    print("   drop_behind: no epoch left a page, over posix, mmap and a shim")


def direct(rig):
    for keys in ({"storage__store": "direct"}, {"reader__odirect": "true"}, {"storage__store": "throttle+direct"}):
        rig.evict()
        cache = rig.run(**keys)
        for c, io in zip(cache, rig.io):
            assert c["cached_at_start_bytes"] == 0 and c["cached_at_end_bytes"] == 0, cache
            assert io is None or io["device_read_bytes"] >= rig.bytes * 0.9, io
        assert rig.resident() == 0
        level, text = rig.verdict("cache")
        assert level == "pass" and "did not grow" in text, text
    # what lies in the cache is not used
    rig.warm()
    rig.run(storage__store="direct")
    assert rig.io[0] is None or rig.io[0]["device_read_bytes"] >= rig.bytes * 0.9, rig.io
    assert rig.verdict("cache")[0] == "pass"

    def generated(_):
        shutil.rmtree(rig.data)
        stoker("generate", *tiny(rig.data, None, **rig.keys, storage__store="direct"))
        return rig.resident() == 0, rig.resident()

    # what is generated so leaves nothing either, but for a page that the kernel has in hand
    right, left = attempts("generated with O_DIRECT", generated)
    assert right, left
    stoker("verify", rig.data)
    print("   direct, odirect: no growth, and the device was read although the cache was warm")


def sampled(rig):
    cache = rig.run(storage__page_cache_files=5, storage__page_cache="cold", train__epochs=1)[0]
    assert cache["files"] == 24 and cache["files_looked_at"] == 5, cache
    assert cache["bytes_looked_at"] == sum(rig.files[i].stat().st_size for i in (0, 1, 2, 3, 4)), cache
    assert "5 of 24 files" in rig.verdict("cache")[1]
    # all are evicted all the same
    assert cache["cached_at_start_bytes"] == 0
    cache = rig.run(storage__page_cache_files=0, train__epochs=1)[0]
    assert cache == {"missing_because": "no file was looked at"}, cache
    assert rig.verdict("cache")[0] == "unknown"
    print("   a part of the files: said so")


def indexed(tmp):
    """Files that stay open, with companion files."""
    rig = Rig(tmp, fmt="tfrecord")
    cache = rig.run(storage__page_cache="cold_epochs")
    assert all(c["cached_at_start_bytes"] == 0 for c in cache)
    index = [f for f in rig.data.rglob("*") if f.is_file() and "train" in f.parts and f not in rig.files]
    print(f"   tfrecord: cold, with {len(index)} companion files")


def mapped(tmp):
    """Files that the workers keep mapped over epochs are let go before they are evicted."""
    for fmt, more in (("mmap_indexed_binary", {}), ("hdf5", dict(storage__store="mmap", reader__read_type="memory"))):
        keys = dict(fmt=fmt, files=4, dataset__num_samples_per_file=4, dataset__record_length_bytes=MIB // 4,
                    train__epochs=3, storage__page_cache="cold_epochs", **more)
        stoker("run", *tiny(tmp / fmt, tmp / "out", **keys))
        result = load(tmp / "out")
        for c in [e["page_cache"] for e in result["training"]["epochs"]]:
            assert c["cached_at_start_bytes"] == 0 and c["own_mapped_bytes"] == 0 < c["cached_at_end_bytes"], (fmt, c)
        assert [v["level"] for v in result["verdicts"] if v["check"] == "cache"] == ["pass"], fmt
    print("   files that the workers keep mapped: each epoch began without a page")


def memory(tmp):
    """Nothing that is memory is taken for a storage."""
    if file_system("/dev/shm") not in MEMORY or not os.access("/dev/shm", os.W_OK):
        left_out("storages that are memory: /dev/shm is not a tmpfs")
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="stoker-pc-") as shm:
        shm = pathlib.Path(shm)
        for keys, status, words in (
                (dict(storage__store="direct"), 1, "tmpfs, which is memory"),
                (dict(reader__odirect="true"), 1, "tmpfs, which is memory"),
                (dict(storage__page_cache="cold"), 1, "cannot evict them"),
                (dict(storage__page_cache="drop_behind"), 1, "cannot evict them")):
            done = stoker("run", *tiny(shm / "d", tmp / "out", **keys), status=None)
            assert done.returncode != 0 and words in done.stderr and done.stderr.count("\n") == 1, done
            assert not [f for f in shm.rglob("*") if f.is_file()], "something was left behind"
        stoker("run", *tiny(shm / "d", tmp / "out"))
        verdict = [v for v in load(tmp / "out")["verdicts"] if v["check"] == "cache"][0]
        assert verdict["level"] == "warn" and "is on tmpfs, which is memory" in verdict["text"], verdict
    done = stoker("run", *tiny(tmp / "m", tmp / "out", storage__store="memory", storage__page_cache="cold"), status=None)
    assert done.returncode != 0 and "storage.page_cache" in done.stderr, done
    print("   tmpfs: refused with O_DIRECT and with eviction, and judged as memory without")


def refusing(tmp):
    """ext4 that journals data opens files with O_DIRECT and then reads them through the page cache: that is
    an error that names it, and no such reading."""
    tmp.mkdir()
    image, mount = tmp / "image", tmp / "mnt"
    mount.mkdir()
    with open(image, "wb") as f:
        f.truncate(64 * MIB)
    made = shutil.which("mkfs.ext4", path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin")
    if os.geteuid() != 0 or not made or subprocess.run([made, "-q", image], capture_output=True).returncode or \
            subprocess.run(["mount", "-o", "loop,data=journal", image, mount], capture_output=True).returncode:
        left_out("O_DIRECT refused: no file system that refuses it can be mounted here")
        return
    try:
        args = tiny(mount / "d", tmp / "out")
        new = stoker("run", *args, "storage.store=direct", status=None)
        left = [f for f in mount.rglob("*") if f.is_file()]
        stoker("run", *args)
        old = stoker("run", *args, "storage.store=direct", "workflow.generate_data=false", status=None)
    finally:
        subprocess.run(["umount", mount], check=True)
    for done in (new, old):
        assert done.returncode != 0 and "(ext4) that does not support O_DIRECT" in done.stderr, done
        assert str(mount) in done.stderr, done
    assert not left, left
    print("   ext4 with a data journal: refused by name")


def main():
    with tempfile.TemporaryDirectory(dir=disk_folder(), prefix="stoker-pc-") as tmp:
        tmp = pathlib.Path(tmp)
        rig = Rig(tmp / "npz")
        for check in (keep, cold, dirty, held, drop_behind, sampled, direct):
            check(rig)
        indexed(tmp / "tfrecord")
        mapped(tmp / "mapped")
        memory(tmp)
        refusing(tmp / "refuse")


if __name__ == "__main__":
    main()
