"""The timed path allocates nothing, maps nothing and takes no lock but its queues': in each format and
access, a run of many steps makes no more such calls than one of few, but for the queues' locks. With
--table the calls of each case are printed."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, STOKER, skip, stoker, tiny  # noqa: E402

COUNTER = pathlib.Path(os.environ.get("STOKER_TOOLS", "build/dev/tests"), "libcall_counter.so")
if SANITIZED:
    skip("a sanitizer has an allocator of its own")
if not COUNTER.exists():
    skip(f"{COUNTER} was not built")
# FORMAT: keys; what maps its files does so again and again, as NumPy's memmap does
FORMATS = {
    "npz": {}, "npz deflate": dict(dataset__compression="zip"), "npy": {}, "hdf5": {},
    "hdf5 gzip": dict(dataset__compression="gzip"),
    "tfrecord": {}, "csv": {}, "csv gzip": dict(dataset__compression="gzip"), "png": {}, "jpeg": {},
    "indexed_binary": {}, "mmap_indexed_binary": {}, "synthetic": {},
}
MAPPED = ("mmap_indexed_binary",)
FILES, FEW, MANY, BATCH = 48, 10, 80, 2
# the index queue and the result queue of a batch, each put and got once
QUEUE_LOCKS = 4


def counts(data, tmp, steps, **keys):
    told = tmp / "calls"
    argv = [STOKER, "run", *map(str, tiny(data, tmp / "out", train__total_training_steps=steps, **keys))]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "LD_PRELOAD": str(COUNTER), "CALL_COUNTS": str(told)})
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in told.read_text().splitlines()]
    return {row[0]: dict(zip(row[1::2], map(int, row[2::2]))) for row in rows}


def check(tmp, name, extra, store):
    fmt = name.split()[0]
    keys = dict(fmt=fmt, files=FILES, reader__batch_size=BATCH, reader__read_threads=2,
                dataset__num_samples_per_file=1 if fmt in ("png", "jpeg") else 4, train__computation_time=0,
                dataset__record_length_bytes=4096, **extra)
    keys["files"] = FILES * 4 // keys["dataset__num_samples_per_file"]
    data = tmp / name.replace(" ", "-")
    stoker("generate", *tiny(data, None, **keys))
    keys["workflow__generate_data"] = "false"
    bad = []
    for access in ("framework", "native"):
        for decode in ("full", "none"):
            for workers in (2, 0):
                keys.update(reader__access=access, reader__decode=decode, reader__read_threads=workers)
                few, many = (counts(data, tmp, n, **keys) for n in (FEW, MANY))
                assert few["rank"]["allocations"] > 0, "the counter counts nothing"
                more = {(kind, call): many[kind][call] - few[kind][call]
                        for kind in ("rank", "worker") for call in ("allocations", "maps", "locks")}
                locks = more.pop(("rank", "locks")) + more.pop(("worker", "locks"))
                if "--table" in sys.argv:
                    print(f"{name:20} {access:9} {decode:4} {workers} workers: "
                          f"{sum(v for k, v in more.items() if k[1] == 'allocations') / (MANY - FEW):5.2f} allocations, "
                          f"{sum(v for k, v in more.items() if k[1] == 'maps') / (MANY - FEW):5.2f} maps, "
                          f"{locks / (MANY - FEW):5.2f} locks a step")
                if fmt in MAPPED:
                    more = {k: v for k, v in more.items() if k[1] != "maps"}
                # a wait of a second in an idle queue looks again
                allowed = (MANY - FEW) * QUEUE_LOCKS + 8 if workers else 0
                if any(more.values()) or locks > allowed:
                    bad.append(f"{name} {access}/{decode}, {workers} workers, {MANY - FEW} steps more: {more}, "
                               f"{locks} locks ({allowed} allowed)")
    return bad


with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as tmp:
    tmp = pathlib.Path(tmp)
    wrong = [line for name, extra in FORMATS.items() for line in check(tmp, name, extra, "posix")]
    print("   every format, access and decoding: nothing allocated, mapped or locked in the steps beyond the queues"
          if not wrong else "\n".join(wrong))
    assert not wrong
