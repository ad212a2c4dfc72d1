"""What DALI's own readers ask of each file, under strace, against the rules: shards, the order of reading,
opens, maps, reads and their places. And what handing a batch over through shared memory takes."""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, STOKER, load, skip, stoker, tiny  # noqa: E402

CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\)\s+= (-?\d+|0x[0-9a-f]+)")
RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$")


def trace(arguments, folder, calls="openat,pread64,read,mmap,process_vm_readv,unlink,ftruncate,fallocate"):
    """(call, path below `folder`, arguments and result) in order of their beginning, whole lines joined."""
    with tempfile.NamedTemporaryFile("r") as out:
        run = subprocess.run(["strace", "-f", "-y", "-s", "0", "-o", out.name, "-e", "trace=" + calls,
                              # looks into the page cache open files, too
                              STOKER, *map(str, arguments), "storage.page_cache_files=0",
                              "dataset.verify_samples=0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"))
        lines = out.read().splitlines()
    if "ptrace" in run.stderr and not lines:
        skip("strace cannot trace here: " + run.stderr.strip())
    assert run.returncode == 0, run.stderr
    waiting, whole = {}, []
    for line in lines:
        thread = line.split(" ", 1)[0]
        if line.endswith("<unfinished ...>"):
            waiting[thread] = len(whole)
            whole.append(line[:-len("<unfinished ...>")])
        elif m := RESUMED.match(line):
            whole[waiting.pop(thread)] += m.group(2)
        else:
            whole.append(line)
    found = []
    for line in whole:
        m = CALL.match(line)
        if not m:
            continue
        paths = re.findall(re.escape(str(folder)) + r"([^\s\">]*)", line)
        if paths or m.group(1) == "process_vm_readv":
            found.append((m.group(1), paths[0] if paths else "", m.group(2) + ", = " + m.group(3)))
    return found


def shard(samples, ranks, s):
    return list(range(samples * s // ranks, samples * (s + 1) // ranks))


def sample_files(calls, kind):
    return [int(re.search(r"img_(\d+)_of", p).group(1)) for c, p, _ in calls
            if c == "openat" and f"/{kind}/" in p and "/index/" not in p]


def span(arguments):
    """(bytes, offset) of a pread64."""
    return tuple(int(x) for x in arguments.split(", = ")[0].rsplit(", ", 2)[1:])


def places(calls, name):
    return [span(a) for c, p, a in calls if c == "pread64" and name in p]


def maps(calls, name):
    return [int(a.split(", ")[1]) for c, p, a in calls if c == "mmap" and name in p]


def merged(order, ranks):
    """Is `order` an interleaving of the two ranks' lists?"""
    first, second = ranks
    at = {0}  # how many of the first rank's may have come
    for n, x in enumerate(order):
        at = {i + 1 for i in at if i < len(first) and first[i] == x} | \
             {i for i in at if n - i < len(second) and second[n - i] == x}
        assert at, (n, x, order, ranks)
    assert len(order) == len(first) + len(second), (order, ranks)


def npy(tmp):
    data, size, head = tmp / "npy", 40000, 128
    keys = dict(fmt="npy", files=9, dataset__record_length_bytes=size, reader__data_loader="native_dali",
                reader__sample_shuffle="off", train__computation_time=0, reader__batch_size=1)
    stoker("generate", *tiny(data, None, **keys))
    keys["workflow__generate_data"] = "false"
    stored = (data / "train/img_0_of_9.npy").stat().st_size
    payload = stored - head

    for shuffle in ("off", "seed"):
        # every file once, in its shard's order: the shuffle buffer changes what is handed out when
        calls = trace(["run", "-n", 2, *tiny(data, tmp / "out", **dict(
            keys, reader__dont_use_mmap="true", reader__sample_shuffle=shuffle, reader__shuffle_size=3))], data)
        merged(sample_files(calls, "train"), [shard(9, 2, 0), shard(9, 2, 1)])
        for i in range(9):
            assert places(calls, f"img_{i}_of") == [(4096, 0), (payload, head)], places(calls, f"img_{i}_of")
            assert not maps(calls, f"img_{i}_of")

    # the next shard in the next epoch, unless it is to stick
    for stick in ("false", "true"):
        calls = trace(["run", "-n", 2, *tiny(data, tmp / "out", **dict(
            keys, train__epochs=2, reader__dont_use_mmap="true", reader__stick_to_shard=stick))], data)
        a, b = shard(9, 2, 0), shard(9, 2, 1)
        merged(sample_files(calls, "train"), [a + a, b + b] if stick == "true" else [a + b, b + a])

    # DLIO gives every rank the first shard
    calls = trace(["run", "-n", 2, *tiny(data, tmp / "out", **dict(
        keys, compat__dlio="true", reader__dont_use_mmap="true"))], data)
    merged(sample_files(calls, "train"), [shard(9, 2, 0)] * 2)

    # mapped whole, never read
    calls = trace(["run", *tiny(data, tmp / "out", **keys)], data)
    assert sample_files(calls, "train") == list(range(9))
    for i in range(9):
        assert places(calls, f"img_{i}_of") == [] and maps(calls, f"img_{i}_of") == [stored]
    copied = [a.split(", = ")[1] for c, _, a in calls if c == "process_vm_readv"]
    assert copied.count("4096") >= 9 and copied.count(str(payload)) == 9, collections.Counter(copied)

    # native: one request a sample
    calls = trace(["run", *tiny(data, tmp / "out", **dict(keys, reader__access="native"))], data)
    for i in range(9):
        assert places(calls, f"img_{i}_of") == [(stored, 0)]
    print("   npy: shards, orders, maps and reads as DALI's")


def tfrecord(tmp):
    data = tmp / "tfrecord"
    keys = dict(fmt="tfrecord", files=3, dataset__num_samples_per_file=4, dataset__record_length_bytes=9000,
                reader__data_loader="native_dali", reader__sample_shuffle="off", train__computation_time=0)
    stoker("generate", *tiny(data, None, **keys))
    keys["workflow__generate_data"] = "false"
    index = [tuple(int(x) for x in line.split())
             for line in (data / "index/train/img_1_of_3.tfrecord.idx").read_text().splitlines()]
    assert len(index) == 4
    stored = (data / "train/img_0_of_3.tfrecord").stat().st_size

    calls = trace(["run", *tiny(data, tmp / "out", **dict(keys, reader__dont_use_mmap="true"))], data)
    opened = [p for c, p, _ in calls if c == "openat" and "img_" in p]
    assert [("/index/" in p) for p in opened] == [True] * 3 + [False] * 3, opened
    for i in range(3):
        records = [span(a) for c, p, a in calls
                   if c == "pread64" and p == f"/train/img_{i}_of_3.tfrecord"]
        assert records == [(n, at) for at, n in index], (records, index)

    # records of a rank's shard that begins and ends within a file
    calls = trace(["run", "-n", 2, *tiny(data, tmp / "out", **dict(keys, reader__dont_use_mmap="true"))], data)
    merged(sample_files(calls, "train"), [[0, 1], [1, 2]])

    calls = trace(["run", *tiny(data, tmp / "out", **keys)], data)
    for i in range(3):
        assert [int(a.split(", ")[1]) for c, p, a in calls
                if c == "mmap" and p == f"/train/img_{i}_of_3.tfrecord"] == [stored]
    print("   tfrecord: index files first, records where they say, a file mapped once")


def transport(tmp):
    data, size = tmp / "npz", 65536
    keys = dict(files=8, dataset__record_length_bytes=size, framework="pytorch", train__computation_time=0,
                reader__batch_size=2)
    stoker("generate", *tiny(data, None, **keys))
    keys.update(workflow__generate_data="false", reader__transport="shared_memory")
    for pin in ("false", "true"):
        calls = trace(["run", *tiny(data, tmp / "out", **dict(keys, reader__pin_thread=pin))], "/dev/shm/stoker_")
        count = collections.Counter(c for c, _, _ in calls)
        # one object a batch; the worker maps it and so does who receives it
        assert count["openat"] == count["unlink"] == count["ftruncate"] == 4, count
        assert count["mmap"] == 8, count
        assert [int(a.split(", = ")[0].rsplit(", ", 1)[1]) for c, _, a in calls if c == "ftruncate"] == [2 * size] * 4
        rank = load(tmp / "out")["ranks"][0]
        assert rank["transport_s"] > 0 and rank["transport_unpack_s"] > 0, rank
        assert ("pin_s" in rank) == (pin == "true"), rank
    stoker("run", *tiny(data, tmp / "out", **dict(keys, reader__transport="none")))
    assert "transport_s" not in load(tmp / "out")["ranks"][0]
    # the number is that of the process: one that lives belongs to another test
    left = [f for f in os.listdir("/dev/shm") if f.startswith("stoker_") and not os.path.exists(f"/proc/{f.split('_')[1]}")]
    assert not left, f"objects are left behind: {left}"
    print("   transport: a shared memory object a batch")


def main():
    if not shutil.which("strace"):
        skip("strace is not installed")
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        npy(tmp)
        tfrecord(tmp)
        if not SANITIZED:
            transport(tmp)


if __name__ == "__main__":
    main()
