"""What was really read: data that is not there (holes, zeros), is there once (links, reflinks), is other data, lies in
memory, or came from the page cache though nobody said so; on real file systems. And none of it said of honest runs.
Parts that need root or a file system that is not there are left out with the reason."""
import fcntl
import glob
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from file_systems import Mounted, Overlay, Tmpfs, Zram  # noqa: E402
import result_facts  # noqa: E402
from loop_device import Unavailable  # noqa: E402
from slow_fs import SlowFs  # noqa: E402
import slow_fs  # noqa: E402
from told import told, verdict  # noqa: E402
from util import attempts, left_out, load, stoker, tiny  # noqa: E402

GROUP = "What was really read"
KIB, MIB = 1 << 10, 1 << 20
FILES, SIZE = 20, 300 * KIB
RAW = "indexed_binary"  # has no header that a reader would miss
EVAL = dict(dataset__num_files_eval=6, workflow__evaluation="true", evaluation__eval_time=0.001)
failures = []


def args(data, out, **keys):
    base = dict(fmt="npy", files=FILES, dataset__record_length_bytes=SIZE, train__computation_time=0.002,
                workflow__generate_data="false")
    base.update(keys)
    return tiny(data, out, **base)


def generate(data, **keys):
    shutil.rmtree(data, ignore_errors=True)
    stoker("generate", *args(data, None, **keys))


def run(data, tmp, status=0, ranks=1, **keys):
    out = os.path.join(tmp, "out")
    shutil.rmtree(out, ignore_errors=True)
    done = stoker("run", *args(data, out, **keys), *(["-n", ranks] if ranks > 1 else []), status=status)
    return load(out) if status == 0 else done.stderr


def files(data):
    return sorted(p for p in glob.glob(f"{data}/train/**/img_*", recursive=True) if not p.endswith(".idx"))


def expect(result, situation, check, level, *words, group=GROUP):
    """The verdict has the level and the facts; tells."""
    found = [v for v in result["verdicts"] if v["check"] == check]
    said = verdict(result, check)
    right = len(found) == 1 and found[0]["level"] in level.split("|") and result_facts.told(found[0]["facts"], words)
    told(group, situation, said)
    print(f"  {'ok  ' if right else 'FAIL'} {situation}: {said}", flush=True)
    if not right:
        failures.append(f"{situation}: not {level} {words}: {said}")


def headline(result, situation, *words, storage="unknown"):
    """What was measured is told in the first line, and "keeps up" of nothing that is not known."""
    said = f"Measured: {result['measured']['text']}"
    limit = result["limit"]["text"] if "limit" in result else ""
    right = result["measured"]["storage"] == storage and result_facts.told(result["measured"]["facts"], words) and \
        (storage == "yes" or not result_facts.told(result["limit"]["facts"] if "limit" in result else [], ["limit.compute "]))
    told(GROUP, situation, said)
    print(f"  {'ok  ' if right else 'FAIL'} {situation}: {said} {limit}", flush=True)
    if not right:
        failures.append(f"{situation}: {said} {limit}")


def evaluation_files(data):
    return sorted(glob.glob(f"{data}/valid/**/img_*", recursive=True))


def check(situation, right, said):
    print(f"  {'ok  ' if right else 'FAIL'} {situation}: {said}", flush=True)
    if not right:
        failures.append(f"{situation}: {said}")


def read_all(paths):
    for p in paths:
        with open(p, "rb", buffering=0) as f:
            while f.read(MIB):
                pass


def evict(paths):
    for p in paths:
        fd = os.open(p, os.O_RDONLY)
        os.fdatasync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def fill(path, data):
    """Overwrites a file with as many bytes as it had; data(n) makes them."""
    n = os.path.getsize(path)
    with open(path, "wb") as f:
        f.write(data(n))


# ---- content and extents ----

def honest_content(disk, tmp):
    for fmt, more in (("npz", dict(dataset__num_subfolders_train=4)), ("tfrecord", dict(dataset__num_samples_per_file=9)),
                      ("hdf5", dict(dataset__compression="gzip", dataset__num_samples_per_file=3)),
                      ("jpeg", {}), ("png", dict(dataset__num_files_eval=6, workflow__evaluation="true")), ("csv", {})):
        keys = dict(fmt=fmt, dataset__record_length_bytes=60 * KIB, **more)
        generate(f"{disk}/{fmt}", **keys)
        r = run(f"{disk}/{fmt}", tmp, storage__page_cache="cold", **keys)
        expect(r, f"{fmt}, {FILES} files as generated, cold", "dataset", "pass", "dataset.as_generated && samples=16 && files=16",
               "dataset.as_generated")
        expect(r, f"{fmt}, the same: comparing leaves nothing in the page cache", "cache", "pass", "cache.held && cached=0")
        shutil.rmtree(f"{disk}/{fmt}")
    keys = dict(storage__store="throttle+memory", storage__throttle__bandwidth=1e9, workflow__generate_data="true")
    expect(run(f"{disk}/none", tmp, **keys), "a dataset in the program's own memory", "dataset", "pass", "dataset.as_generated")


def wrong_content(disk, tmp):
    data = f"{disk}/wrong"

    def planted(situation, change, level, *words, **keys):
        generate(data, fmt=RAW, **{k: v for k, v in keys.items() if k in EVAL})
        change(files(data))
        r = run(data, tmp, fmt=RAW, reader__decode="none", storage__page_cache="cold", **keys)
        expect(r, situation, "dataset", level, *words)
        return r

    noise = random.Random(5)
    planted(f"zeros of the same size in all of {FILES} files", lambda fs: [fill(p, bytes) for p in fs], "fail",
            "dataset.zeros && files=16")
    planted("one byte, 0xa5, in all of the files", lambda fs: [fill(p, lambda n: b"\xa5" * n) for p in fs], "fail",
            "dataset.constant && files=16")
    planted("zeros in 1 of 20 files, all of which are compared", lambda fs: fill(fs[13], bytes), "warn",
            "dataset.zeros && files=1", "img_13_of_20", dataset__verify_samples=40)
    planted("random bytes of the same size", lambda fs: [fill(p, noise.randbytes) for p in fs], "fail",
            "dataset.other && files=16", "differs from byte 0 on")
    planted("the content of the first file in all of them, as copies", lambda fs: [shutil.copy(fs[0], p) for p in fs[1:]],
            "fail", "dataset.copied")
    planted("files in reverse order", lambda fs: [os.rename(a, a + ".x") for a in fs] and
            [os.rename(a + ".x", b) for a, b in zip(fs, reversed(fs))], "fail", "dataset.other")

    def middle(fs):
        for p in fs:
            with open(p, "r+b") as f:
                f.seek(200 * KIB)
                f.write(bytes(4096))
    planted("4 KiB of zeros in the middle of each file", middle, "fail", "dataset.other", "from byte 204800 on")

    def other_seed(fs):
        generate(f"{disk}/seven", fmt=RAW, dataset__seed=7)
        for p in fs:
            shutil.copy(p.replace("/wrong/", "/seven/"), p)
        shutil.rmtree(f"{disk}/seven")
    planted("a dataset of seed 7 below the manifest of seed 0", other_seed, "fail", "dataset.other")

    def bare(fs, fill_with=None):
        for p in glob.glob(f"{data}/**/*", recursive=True) + glob.glob(f"{data}/.*"):
            if "manifest" in os.path.basename(p):
                os.unlink(p)
        for p in fs if fill_with else []:
            fill(p, fill_with)
    planted("no manifest, files as generated", bare, "pass", "dataset.as_generated")
    planted("no manifest, files of zeros", lambda fs: bare(fs, bytes), "fail", "dataset.zeros && files=16")
    planted("no manifest, random bytes", lambda fs: bare(fs, noise.randbytes), "pass", "dataset.foreign")
    same = noise.randbytes(2 * SIZE)
    planted("no manifest, the same random bytes in all files", lambda fs: bare(fs, lambda n: same[:n]), "fail",
            "dataset.copied && files=16")
    def evaluation(fs):
        for p in glob.glob(f"{data}/valid/img_*indexed_binary"):
            fill(p, bytes)
    planted("6 evaluation files of zeros beside 20 good training files", evaluation, "fail", "dataset.zeros && files=4", **EVAL)
    planted("the same with 2 accelerators, 2 epochs", evaluation, "fail", "dataset.zeros && files=4", train__epochs=2, ranks=2, **EVAL)
    r = planted("zeros, with dataset.verify_samples=0", lambda fs: [fill(p, bytes) for p in fs], "pass",
                dataset__verify_samples=0)
    check("nothing is compared then", "content" not in r["dataset"] and "Content" not in verdict(r, "dataset"), "")
    shutil.rmtree(data)


def large_samples(disk, tmp):
    """Of samples of 24 MiB only parts are compared."""
    data, keys = f"{disk}/large", dict(fmt="npz", files=6, dataset__record_length_bytes=24 * MIB, reader__batch_size=1)
    generate(data, **keys)
    r = run(data, tmp, storage__page_cache="cold", reader__access="native", reader__decode="none", **keys)
    expect(r, "6 files of 24 MiB as generated, cold", "dataset", "pass", "dataset.as_generated && samples=6 && files=6")
    read = r["dataset"]["content"]["compared_bytes"]
    check("of large samples only parts are compared", 6 * 512 * KIB <= read <= 6 * MIB, f"{read} bytes")
    for p in files(data):
        with open(p, "r+b") as f:
            f.seek(4 * MIB)
            f.write(bytes(12 * MIB))
    r = run(data, tmp, storage__page_cache="cold", reader__access="native", reader__decode="none", **keys)
    expect(r, "12 MiB of zeros in the middle of files of 24 MiB", "dataset", "fail", "dataset.other")
    shutil.rmtree(data)


def links(disk, tmp):
    data = f"{disk}/links"
    for name, link in (("hard links", os.link), ("symbolic links", os.symlink)):
        generate(data)
        fs = files(data)
        for p in fs[1:]:
            os.unlink(p)
            link(fs[0], p)
        r = run(data, tmp, reader__decode="none", storage__page_cache="cold")
        expect(r, f"{FILES} names that are {name} to one file", "dataset", "fail", f"dataset.links && names={FILES} && files=1")
        generate(data)
        fs = files(data)
        os.unlink(fs[7])
        link(fs[3], fs[7])
        r = run(data, tmp, reader__decode="none", storage__page_cache="cold", dataset__verify_samples=1)
        expect(r, f"1 of {FILES} names a {name[:-1]} to another", "dataset", "warn", "dataset.links && files=19")
        evaluation = dict(EVAL, dataset__num_files_eval=12)
        generate(data, **evaluation)
        fs = evaluation_files(data)
        for p in fs[1:]:
            os.unlink(p)
            link(fs[0], p)
        r = run(data, tmp, reader__decode="none", storage__page_cache="cold", **evaluation)
        named = f"{len(fs)} evaluation files that are {name} to one"
        expect(r, f"{named}: their bytes", "eval-bytes", "warn", f"bytes.links && files={FILES + 1}")
        check(f"{named}: no word of a file system that does not report, or of another program",
              not any(w in verdict(r, c) for c in ("eval-bytes", "ledger") for w in ("does not report", "another program")),
              verdict(r, "ledger"))
    generate(data)
    shutil.move(f"{data}/train", f"{disk}/elsewhere")
    os.mkdir(f"{data}/train")
    for p in os.listdir(f"{disk}/elsewhere"):
        os.symlink(f"{disk}/elsewhere/{p}", f"{data}/train/{p}")
    expect(run(data, tmp, storage__page_cache="cold"), "each name a symbolic link to a file of its own", "dataset", "pass")
    shutil.rmtree(data)
    shutil.rmtree(f"{disk}/elsewhere")


def punch(path, offset, length):
    subprocess.run(["fallocate", "-p", "-o", str(offset), "-l", str(length), path], check=True)


def holes(disk, tmp):
    data = f"{disk}/holes"

    def planted(situation, change, level, *words):
        generate(data, fmt=RAW)
        change(files(data))
        r = run(data, tmp, fmt=RAW, reader__decode="none", storage__page_cache="cold")
        expect(r, situation, "dataset", level, *words)
        return r

    def hollow(fs):
        for p in fs:
            n = os.path.getsize(p)
            os.unlink(p)
            with open(p, "wb") as f:
                f.truncate(n)
    r = planted(f"{FILES} files that are holes, by truncate", hollow, "fail", f"dataset.holes && files={FILES} && of={FILES} && percent=100",
                "dataset.zeros")
    expect(r, "the same: the device is not said to have been measured", "bytes", "warn", "bytes.thin")

    def reserved(fs):
        for p in fs:
            n = os.path.getsize(p)
            os.unlink(p)
            subprocess.run(["fallocate", "-l", str(n), p], check=True)
    planted("files with blocks that were never written, by fallocate", reserved, "fail", "dataset.holes && percent=100")
    planted("half of each file punched out", lambda fs: [punch(p, 64 * KIB, 148 * KIB) for p in fs], "fail",
            f"dataset.holes && files={FILES} && of={FILES} && percent=49.")
    planted("4 KiB punched out of 3 of the files", lambda fs: [punch(p, 64 * KIB, 4096) for p in fs[:3]], "fail",
            "dataset.holes && files=3 && of=20")
    shutil.rmtree(data)


# ---- file systems ----

def cold_and_warm(name, data, tmp, device=None, **keys):
    """Cold runs read all from the device, warm ones nothing; each is said."""
    generate(data, **keys)
    size = sum(os.path.getsize(p) for p in files(data))
    for how, more in (("cold", {}), ("cold_epochs", dict(train__epochs=2)), ("drop_behind", dict(train__epochs=2))):
        read_all(files(data))
        before = device.delivered() if device else 0
        r = run(data, tmp, storage__page_cache=how, dataset__verify_samples=0, **more, **keys)
        truth = (device.delivered() - before) / size if device else None
        passes = more.get("train__epochs", 1)
        expect(r, f"{name}, storage.page_cache={how}: {passes} x all bytes from the device", "bytes", "pass", "bytes.storage"
               if "memory" not in name else "")
        headline(r, f"{name}, storage.page_cache={how}: the first line", "measured.storage", storage="yes")
        expect(r, f"{name}, storage.page_cache={how}", "cache", "pass", "cache.held && cached=0")
        if device:
            check(f"{name}, {how}: by the device's own counter", passes <= truth * 1.001 <= 1.2 * passes, f"{truth:.3f} times the files")
        if device:
            found = r["storage_path"]["devices"]
            check(f"{name}: the device is found", found == [os.path.basename(device.node)], found)
        check(f"{name}: no network in the ledger", all(l["key"] != "network_received" for l in r["ledger"]), "")
        # other programs use the disk below the loop device, too
        flagged = [l["why"] for l in r["ledger"] if l.get("state") == "flagged" and l["key"] != "disks_below"]
        check(f"{name}, {how}: every count of bytes agrees", not flagged, flagged)
    # comparing content changes nothing of what is cached
    evict(files(data))
    read_all(files(data)[:8])
    r = run(data, tmp, **keys)
    cached = r["training"]["epochs"][0]["page_cache"]["cached_at_start_bytes"]
    check(f"{name}: what is cached in part stays so", abs(cached - size * 8 / FILES) <= 8192 * 8, f"{cached} of {size}")
    expect(r, f"{name}, 8 of {FILES} files cached, 16 compared before", "cache", "warn", "cache.measured && all=0")
    evict(files(data))
    r = run(data, tmp, **keys)
    cached = r["training"]["epochs"][0]["page_cache"]["cached_at_start_bytes"]
    check(f"{name}: comparing leaves cold files cold", cached == 0, f"{cached} bytes")
    read_all(files(data))
    r = run(data, tmp, **keys)
    expect(r, f"{name}, all of the dataset in the page cache", "cache", "warn", "cache.measured && all=1")
    expect(r, f"{name}, the same", "bytes", "warn", "bytes.cache")
    r = run(data, tmp, storage__store="direct", **keys)
    expect(r, f"{name}, cached, read with O_DIRECT", "bytes", "pass", "bytes.storage")


def with_reflinks(name, folder, tmp):
    data = f"{folder}/reflinks"
    generate(data)
    fs = files(data)
    for p in fs[1:]:
        os.unlink(p)
        subprocess.run(["cp", "--reflink=always", fs[0], p], check=True)
    r = run(data, tmp, reader__decode="none", storage__page_cache="cold")
    expect(r, f"{name}, {FILES} reflinks of one file", "dataset", "fail", f"dataset.twins && files={FILES} && of={FILES}")


def on_xfs(disk, tmp):
    m = Mounted("xfs", disk)
    with m as folder:
        cold_and_warm("xfs", f"{folder}/data", tmp, m)
        with_reflinks("xfs", folder, tmp)


def on_ext4(disk, tmp):
    m = Mounted("ext4", disk)
    with m as folder:
        cold_and_warm("ext4", f"{folder}/data", tmp, m, fmt="npz")


def on_btrfs(disk, tmp):
    m = Mounted("btrfs", disk, options="compress=zstd")
    with m as folder:
        cold_and_warm("btrfs", f"{folder}/data", tmp, m)
        with_reflinks("btrfs", folder, tmp)
        stoker("generate", *args(f"{folder}/sub/data", None)) if os.path.isdir(f"{folder}/sub") else None
        subprocess.run(["btrfs", "-q", "subvolume", "create", f"{folder}/vol"], check=True)
        generate(f"{folder}/vol/data")
        subprocess.run(["btrfs", "-q", "subvolume", "snapshot", f"{folder}/vol", f"{folder}/snap"], check=True)
        r = run(f"{folder}/snap/data", tmp, storage__page_cache="cold")
        expect(r, "btrfs, a snapshot of a subvolume: shared blocks, but none twice", "dataset", "pass", "dataset.shared")
        expect(r, "btrfs, the same", "bytes", "pass", "bytes.storage")
        # a table of few values, which zstd makes small
        generate(f"{folder}/vol/small", fmt="csv")
        r = run(f"{folder}/vol/small", tmp, fmt="csv", storage__page_cache="cold")
        expect(r, "btrfs with compress=zstd, csv files", "dataset", "pass", "dataset.compressed && files=20 && of=20", "dataset.as_generated")
        expect(r, "btrfs with compress=zstd, csv files, cold", "bytes", "warn", "bytes.thin")
        generate(f"{folder}/vol/tiny", dataset__record_length_bytes=900)
        r = run(f"{folder}/vol/tiny", tmp, dataset__record_length_bytes=900)
        expect(r, "btrfs, files of 900 bytes", "dataset", "pass", "dataset.inline && files=20 && of=20")


def on_overlay(disk, tmp):
    m = Mounted("ext4", disk)
    with m as folder:
        with Overlay(folder) as mount:
            cold_and_warm("overlay, files in the upper layer", f"{mount}/data", tmp, m)
    m = Mounted("ext4", disk)
    with m as folder:
        generate(f"{folder}/l/data")
        with Overlay(folder) as mount:
            size = sum(os.path.getsize(p) for p in files(f"{mount}/data"))
            read_all(files(f"{mount}/data"))
            before = m.delivered()
            r = run(f"{mount}/data", tmp, storage__page_cache="cold", dataset__verify_samples=0)
            truth = (m.delivered() - before) / size
            expect(r, "overlay, files in the lower layer, cold", "cache", "pass", "cache.held && cached=0")
            check("overlay, lower layer: by the device's own counter", 1 <= truth * 1.001 <= 1.2, f"{truth:.3f} times the files")
            check("overlay: the device is found", r["storage_path"]["devices"] == [os.path.basename(m.node)], r["storage_path"])
    with Tmpfs() as memory, Overlay(memory) as mount:
        generate(f"{mount}/data")
        expect(run(f"{mount}/data", tmp), "overlay over tmpfs", "cache", "warn", "cache.memory && overlay over tmpfs")
        said = run(f"{mount}/data", tmp, status=2, storage__page_cache="cold")
        told(GROUP, "overlay over tmpfs, storage.page_cache=cold", said)
        check("overlay over tmpfs cannot be cold", "overlay over tmpfs" in said and "cannot evict" in said, said)


def memory_below(disk, tmp):
    with Mounted("ext4", "/dev/shm") as folder:
        generate(f"{folder}/data")
        for how, more in (("cold", dict(storage__page_cache="cold")), ("O_DIRECT", dict(storage__store="direct"))):
            r = run(f"{folder}/data", tmp, **more)
            expect(r, f"ext4 on a loop device over tmpfs, {how}", "cache", "warn", "cache.device_memory && is a file in memory (/dev/shm/")
            expect(r, f"ext4 on a loop device over tmpfs, {how}, bytes", "bytes", "pass", "bytes.below_memory")
    with Mounted("btrfs", "/dev/shm") as folder, Overlay(folder) as mount:
        generate(f"{mount}/data")
        expect(run(f"{mount}/data", tmp, storage__page_cache="cold"), "overlay over btrfs on a loop device over tmpfs", "cache", "warn",
               "is a file in memory")
    with Zram(96) as node, Mounted("ext4", node=node) as folder:
        generate(f"{folder}/data")
        expect(run(f"{folder}/data", tmp, storage__page_cache="cold"), "ext4 on zram", "cache", "warn", "zram0 is compressed memory")
        keys = dict(workflow__checkpoint="true", checkpoint__checkpoint_folder=f"{folder}/ck", model__model_size_bytes=MIB)
        expect(run(f"{folder}/data", tmp, **keys), "checkpoints of 1 MiB on ext4 on zram", "checkpoint", "warn", "zram0 is compressed memory")


def sparse_in_memory(disk, tmp):
    """A file system that reports no extents: the number of blocks is left."""
    with Tmpfs() as memory:
        generate(f"{memory}/data", fmt=RAW)
        for p in files(f"{memory}/data"):
            size = os.path.getsize(p)
            os.truncate(p, 50 * KIB)
            os.truncate(p, size)
        r = run(f"{memory}/data", tmp, fmt=RAW, reader__decode="none")
        expect(r, "tmpfs, 250 KiB of 300 KiB of each file a hole", "dataset", "fail", "dataset.sparse && files=20 && of=20")
        expect(r, "tmpfs", "cache", "warn", "memory && tmpfs")


def loop_over_fuse(disk, tmp):
    source = tempfile.mkdtemp(dir=disk)
    keys = dict(train__computation_time=0.03)
    with SlowFs(source) as mount:
        with Mounted("ext4", mount) as folder:
            generate(f"{folder}/data")
            r = run(f"{folder}/data", tmp, storage__page_cache="cold", **keys)
            expect(r, "ext4 on a loop device over a file on FUSE", "bytes", "unknown", "is the file", "on fuse")
            headline(r, "ext4 on a loop device over a file on FUSE: the first line", "origin.device && on fuse")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as source, SlowFs(source) as mount:
        with Mounted("ext4", mount, direct=False) as folder:
            for name, more in (("storage.store=direct", dict(storage__store="direct")),
                               ("cold_epochs", dict(storage__page_cache="cold_epochs", train__epochs=2))):
                generate(f"{folder}/data")
                r = run(f"{folder}/data", tmp, **more, **keys)
                expect(r, f"ext4 on a buffered loop device over FUSE over tmpfs, {name}", "bytes", "unknown", "on fuse")
                headline(r, f"buffered loop device over FUSE, {name}: the first line", "origin.device && on fuse")
            shutil.rmtree(f"{folder}/data")
            r = run(f"{disk}/ckfuse", tmp, checkpoint__checkpoint_folder=f"{folder}/ck", checkpoint__fsync="true",
                    workflow__generate_data="true", workflow__checkpoint="true", model__model_size_bytes=2 * MIB)
            expect(r, "checkpoints of 2 MiB on ext4 on a buffered loop device over FUSE, synced", "checkpoint", "unknown", "origin.checkpoints_device && on fuse")
            check("the first line says so", "target" in r["measured"]["taken"] and result_facts.told(r["measured"]["facts"], ["measured.target"]),
                  r["measured"]["text"])


def loop_file(disk, tmp):
    m = Mounted("ext4", disk, direct=False)
    with m as folder:
        generate(f"{folder}/data")
        read_all([m.image])
        r = run(f"{folder}/data", tmp, storage__page_cache="cold")
        expect(r, "ext4 on a loop device whose file is in the page cache, cold", "bytes", "warn", "bytes.below_cached && is the file")
        evict([m.image])
        r = run(f"{folder}/data", tmp, storage__page_cache="cold", dataset__verify_samples=0)
        expect(r, "the same with the file evicted as well", "bytes", "pass", "bytes.storage")


def checkpoints(disk, tmp):
    data = f"{disk}/ckdata"
    generate(data)
    keys = dict(workflow__checkpoint="true", model__model_size_bytes=2 * MIB)
    with Tmpfs() as memory:
        for fsync in ("true", "false"):
            r = run(data, tmp, checkpoint__checkpoint_folder=f"{memory}/ck", checkpoint__fsync=fsync, **keys)
            expect(r, f"checkpoints of 2 MiB on tmpfs, checkpoint.fsync={fsync}", "checkpoint", "warn", "memory && tmpfs")
    for kind in ("ext4", "btrfs", "xfs"):
        with Mounted(kind, disk) as folder:
            r = run(data, tmp, checkpoint__checkpoint_folder=f"{folder}/ck", checkpoint__fsync="true", **keys)
            expect(r, f"checkpoints of 2 MiB on {kind}, synced", "checkpoint", "pass", "checkpoint.written && disk=")
    shutil.rmtree(data)


def fuse_over_memory(disk, tmp):
    """Nothing of this machine delivers the bytes, but its memory. Other programs may use the disk meanwhile."""
    keys = dict(dataset__record_length_bytes=4 * MIB, train__computation_time=0.02)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as source, tempfile.TemporaryDirectory(dir=disk) as warm:
        for at, said in ((source, "over tmpfs"), (warm, "over files in this machine's page cache")):
            generate(f"{at}/data", **keys)
            read_all(files(f"{at}/data"))
            with SlowFs(at, read_us=500, direct=1) as mount:
                def once(_n, mount=mount):
                    r = run(f"{mount}/data", tmp, dataset__verify_samples=0, **keys)
                    return result_facts.told(r["measured"]["facts"], ["origin.server_nothing"]), r

                right, r = attempts(f"FUSE {said}", once)
                check(f"FUSE {said}: seen most of the time", right, "")
                expect(r, f"FUSE {said}, {FILES} samples of 4 MiB", "bytes", "warn", "origin.server_nothing")
                headline(r, f"FUSE {said}: its first line", "origin.server_nothing && fuse")
            shutil.rmtree(f"{at}/data")


def on_fuse(disk, tmp):
    source = f"{disk}/fuse"
    generate(f"{source}/data", **EVAL)
    with SlowFs(source, read_us=3000) as mount:
        evict(files(f"{source}/data") + evaluation_files(f"{source}/data"))
        r = run(f"{mount}/data", tmp, **EVAL)
        expect(r, "FUSE, 3 ms a read: its evaluation", "eval-bytes", "unknown|warn", "uncounted.cold && fuse.slow_fs")
        limit, place = r["limit"]["text"], r["limit"]["facts"][0].get("texts", {}).get("place")
        told(GROUP, "FUSE, 3 ms a read: what limits it", limit)
        check("FUSE, 3 ms a read: limited by its file system, of which nobody knows whether it is the storage",
              r["limit"]["cause"] in ("storage", "latency", "stream_bandwidth", "workers") and
              place != "storage" and
              (r["limit"]["cause"] == "workers" or place == "file system fuse.slow_fs"), limit)
    with SlowFs(source, read_us=300) as mount:
        evict(files(f"{source}/data"))
        r = run(f"{mount}/data", tmp)
        expect(r, "FUSE, 0.3 ms a read, nothing cached", "bytes", "unknown|warn", "uncounted.cold")
        headline(r, "FUSE, 0.3 ms a read: the first line", "origin.server && fuse")
        expect(r, "FUSE, the same: its counts of bytes", "ledger", "pass")
        r = run(f"{mount}/data", tmp, storage__page_cache_files=0)
        expect(r, "FUSE, storage.page_cache_files=0", "bytes", "unknown", "uncounted.unknown")
    with SlowFs(source, keep=1) as mount:
        read_all(files(f"{mount}/data"))
        r = run(f"{mount}/data", tmp)
        expect(r, "FUSE that keeps its pages, all of them cached", "bytes", "warn", "uncounted.cache && share=1")
        expect(r, "FUSE that keeps its pages, the same", "cache", "warn", "cache.measured && all=1")
        r = run(f"{mount}/data", tmp, storage__page_cache="cold")
        expect(r, "FUSE that keeps its pages, storage.page_cache=cold", "bytes", "unknown|warn", "uncounted.cold")
        headline(r, "FUSE, storage.page_cache=cold: the first line", "origin.server && fuse")
        r = run(f"{mount}/data", tmp, storage__store="direct")
        expect(r, "FUSE read with O_DIRECT", "bytes", "unknown|warn", "uncounted.direct")
    with SlowFs(source, direct=1) as mount:
        r = run(f"{mount}/data", tmp)
        expect(r, "FUSE with direct_io", "bytes", "unknown|warn", "uncounted.cold")
        check("FUSE: no network in the ledger", all(l["key"] != "network_received" for l in r["ledger"]), "")
    shutil.rmtree(source)


# ---- the page cache ----

def cached_evaluation(disk, tmp):
    """The page cache holds the evaluation files alone: training reads the storage, and its verdict says so."""
    data = f"{disk}/cached-eval"
    generate(data, **EVAL)
    evict(files(data))
    read_all(evaluation_files(data))
    r = run(data, tmp, train__epochs=1, **EVAL)
    expect(r, "evaluation files cached, training files not: training", "cache", "pass", "cache.held_unused")
    expect(r, "evaluation files cached, training files not: evaluation", "eval-cache", "warn", "cache.eval_measured")
    headline(r, "evaluation files cached, training files not: the first line", "measured.storage", storage="yes")
    shutil.rmtree(data)


def other_program(disk, tmp):
    data = f"{disk}/other"
    keys = dict(dataset__record_length_bytes=MIB, files=40, train__computation_time=0.03)
    generate(data, **keys)
    paths, stop = files(data), threading.Event()

    def reader():
        while not stop.is_set():
            read_all(paths)
            time.sleep(0.02)
    beside = threading.Thread(target=reader)
    beside.start()
    r = run(data, tmp, storage__page_cache="cold", dataset__verify_samples=4, **keys)
    stop.set()
    beside.join()
    if r["training"]["epochs"][0]["page_cache"]["cached_at_start_bytes"] > 4 * MIB:
        print("  the other program was faster than the first look", flush=True)
        expect(r, "40 MiB, cold, while another program reads the same files", "bytes", "warn", "bytes.cache")
    else:
        expect(r, "40 MiB, cold, while another program reads the same files", "bytes", "warn", "bytes.cache", "bytes.other_reader")
    shutil.rmtree(data)


def subfolders(disk, tmp):
    data = f"{disk}/subs"
    keys = dict(files=60, dataset__num_subfolders_train=6, dataset__record_length_bytes=16 * KIB, storage__page_cache_files=12)
    generate(data, **keys)
    for warm in (0, 3, 5):
        evict(files(data))
        read_all(sorted(glob.glob(f"{data}/train/{warm}/*")))
        cache = run(data, tmp, **keys)["training"]["epochs"][0]["page_cache"]
        share = cache["cached_at_start_bytes"] / cache["bytes_looked_at"]
        situation = f"1 of 6 subfolders cached (number {warm}), 12 of 60 files looked at"
        told(GROUP, situation, f"{100 * share:.0f} % of what was looked at is cached")
        check(situation, abs(share - 1 / 6) < 0.01, f"{share:.3f} is cached")
    shutil.rmtree(data)


def cache_behind(disk, tmp):
    """Reads of the first epoch take longer, and the page cache is empty before each: something behind it has the rest."""
    data = f"{disk}/behind"
    generate(data, files=40)
    keys = dict(files=40, train__epochs=3, reader__read_threads=2, reader__access="native", storage__page_cache="cold_epochs",
                storage__store="fault+posix", storage__fault__op="read", storage__fault__action="delay",
                storage__fault__delay=0.03, storage__fault__nth=1)
    r = run(data, tmp, storage__fault__count=40, **keys)
    expect(r, "3 cold epochs, reads of the first one take 30 ms longer", "cache", "warn", "cache.behind")
    r = run(data, tmp, storage__fault__count=0, **keys)
    expect(r, "3 cold epochs, all reads take 30 ms longer", "cache", "pass", "cache.held")
    shutil.rmtree(data)


def main():
    parts = [cache_behind, honest_content, wrong_content, large_samples, links, holes, sparse_in_memory, loop_over_fuse, subfolders, cached_evaluation, other_program, on_ext4, on_xfs, on_btrfs, on_overlay, on_fuse, fuse_over_memory,
             memory_below, loop_file, checkpoints]
    chosen = sys.argv[1:]
    with tempfile.TemporaryDirectory() as tmp, tempfile.TemporaryDirectory(dir="/var/tmp") as disk:
        for part in parts:
            if chosen and part.__name__ not in chosen:
                continue
            begin = time.monotonic()
            try:
                part(disk, tmp)
            except (Unavailable, slow_fs.Unavailable) as e:
                left_out(f"{part.__name__}: {e}")
            print(f"{part.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
    for f in failures:
        print("failed:", f)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
