"""Situations with known limiting causes that need real files: page cache, tmpfs, a file system in user space, a device
held to a rate. rig_cases() yields (family, situation, causes, run): run(out) makes the run and returns its result."""
import os
import pathlib
import subprocess
import tempfile

from loop_device import LoopDevice, join
from slow_fs import SlowFs
from test_processors import Group, Hogs
from util import STOKER, load, stoker, tiny

KIB, MIB = 1 << 10, 1 << 20
CEILING = {"queue", "requests"}
KEYS = dict(fmt="npy", dataset__record_length_bytes=128 * KIB, reader__batch_size=2, reader__access="native",
            workflow__generate_data="false")


def keys(**more):
    return dict(KEYS, **more)


def start(data, out, ranks, groups=(), **more):
    done = subprocess.run([STOKER, "run", *map(str, tiny(data, out, **keys(**more))), "-n", str(ranks)],
                          capture_output=True, text=True, timeout=100, preexec_fn=join(list(groups)))
    assert done.returncode == 0, done.stderr
    return load(out)


def generated(folder, files, **more):
    stoker("run", *tiny(folder, f"{folder}-out", files=files, **keys(**dict(dict(
        workflow__train="false", workflow__generate_data="true"), **more))))
    return folder


def read_all(folder):
    for path in pathlib.Path(folder).rglob("*"):
        if path.is_file():
            path.read_bytes()


def in_memory(tmp):
    """tmpfs and the page cache of a disk."""
    small = dict(dataset__record_length_bytes=4096, reader__access="framework")
    shm = tempfile.TemporaryDirectory(dir="/dev/shm")
    disk = tempfile.TemporaryDirectory(dir=os.getcwd())
    with shm as a, disk as b:
        for where, folder in (("tmpfs", a), ("the page cache", b)):
            data = generated(f"{folder}/data", 2000, **small)

            def busy(out, data=data):
                read_all(data)
                return start(data, out, 1, files=2000, train__computation_time=0.00001, **small)

            def calm(out, data=data):
                read_all(data)
                return start(data, out, 2, files=2000, train__total_training_steps=60, train__computation_time=0.02, **small)

            yield "memory", f"samples of 4 KiB from {where}, nothing to compute", {"page_cache"}, busy
            yield "compute", f"samples of 4 KiB from {where}, 2 ranks, 20 ms of computing", \
                {"page_cache"}, calm


def behind_a_shim(tmp):
    """Files in the page cache, read through a store that is slow by itself."""
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        data = generated(f"{folder}/data", 120, reader__access="framework")

        def slow(out):
            read_all(data)
            return start(data, out, 1, files=120, reader__access="framework", reader__read_threads=3,
                         reader__prefetch_size=6, train__computation_time=0.003, storage__store="throttle+posix",
                         storage__throttle__latency=0.005)
        yield "layer", "files in the page cache, 3 workers, each request takes 5 ms in throttle+posix", {"latency"}, slow


def without_processors(tmp):
    """Decoding beside busy loops, and with a quota."""
    decodes = dict(files=60, fmt="csv", storage__store="memory", dataset__record_length_bytes=MIB,
                   reader__access="framework", reader__decode="full", train__computation_time=0.002,
                   workflow__generate_data="true")

    def beside(out):
        with Hogs(3 * len(os.sched_getaffinity(0))):
            return start("/causes", out, 1, **decodes)

    def quota(out):
        with Group("cpu", cpu__cfs_quota_us=30000, cpu__cfs_period_us=100000) as group:
            return start("/causes", out, 1, [group.folder], **decodes)

    yield "processors", "decoding csv beside three busy loops for each processor", {"other_programs"}, beside
    if os.path.isdir("/sys/fs/cgroup/cpu") and os.geteuid() == 0:
        yield "processors", "decoding csv with a quota of 0.3 processors", {"cpu_quota"}, quota


def behind_a_layer(tmp):
    """Files that are in memory, behind a file system that is slow."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as source:
        generated(f"{source}/data", 240, dataset__record_length_bytes_stdev=60000)
        for text, causes, ranks, workers, compute, layer in (
                ("each read takes 9 ms", {"latency"}, 1, 3, 0.002, dict(read_us=9000, direct=1)),
                ("each read takes 4 ms, 2 ranks", {"latency"}, 2, 2, 0.001, dict(read_us=4000, direct=1)),
                ("each open takes 12 ms", {"metadata"}, 1, 3, 0.002, dict(open_us=12000, direct=1)),
                ("all reads get 12 MB/s together", {"bandwidth", "queue"}, 1, 4, 0.01, dict(bytes_s=12e6, direct=1)),
                ("all reads get 20 MB/s together, through the page cache, 2 ranks", {"bandwidth", "queue"}, 2, 3, 0.01,
                 dict(bytes_s=20e6)),
                ("one request after another, 5 ms each", CEILING, 1, 4, 0.008, dict(read_us=5000, turns=1, direct=1)),
                ("one request after another, 3 ms each, 3 ranks", CEILING, 3, 2, 0.01,
                 dict(read_us=3000, turns=1, direct=1)),
                ("opens one after another, 7 ms each", {"opens"}, 1, 4, 0.006, dict(open_us=7000, turns=1, direct=1)),
                ("a read takes 0.8 ms, and 7 ms more for each other one, with a probe", {"contention"}, 1, 6, 0.004,
                 dict(read_us=800, crowd_us=7000, direct=1, run__probe="true", run__probe_time=3))):
            probe = {k: layer.pop(k) for k in list(layer) if k.startswith("run__")}

            def slow(out, ranks=ranks, workers=workers, compute=compute, layer=layer, probe=probe):
                with SlowFs(source, **layer) as mount:
                    return start(f"{mount}/data", out, ranks, files=240, reader__read_threads=workers,
                                 reader__prefetch_size=2 * workers, dataset__record_length_bytes_stdev=60000,
                                 train__computation_time=compute, **probe)
            yield "layer", f"files in memory behind a file system in user space: {text}, {workers} workers", causes, slow


def device(tmp):
    with LoopDevice(120) as disk:
        disk.read_ahead_kib(0)
        data = generated(f"{disk.mount}/data", 240)
        for text, file, value in (("20 MB/s", "read_bps", 20_000_000), ("90 requests/s", "read_iops", 90)):
            group = disk.group("blkio", **{f"blkio__throttle__{file}_device": f"{disk.number()} {value}"})
            if not group:
                return

            def held(out, group=group):
                disk.cold()
                return start(data, out, 2, [group], files=240, reader__read_threads=2, reader__prefetch_size=4,
                             train__computation_time=0.01, storage__store="direct")
            yield "control group", f"2 ranks on a device that a control group limits to {text}", {"io_limit"}, held
            disk.group("blkio", **{f"blkio__throttle__{file}_device": f"{disk.number()} 0"})


RIGS = (in_memory, behind_a_shim, without_processors, behind_a_layer, device)
