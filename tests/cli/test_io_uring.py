"""Requests in flight: every format on io_uring and on helper threads, with one request at a time and with
many; what the system calls say of the depth; and the sentences of what cannot be."""
# tier: long
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, STOKER, load, skip, stoker, tiny  # noqa: E402

FORMATS = ["npy", "npz", "indexed_binary", "mmap_indexed_binary", "tfrecord", "csv", "png", "jpeg", "hdf5", "synthetic"]
DIRECT = dict(storage__io_uring__direct="true")


def keys(fmt, **more):
    base = dict(fmt=fmt, files=4, dataset__num_samples_per_file=6, dataset__record_length_bytes=10000,
                reader__batch_size=12, reader__access="native", reader__sample_shuffle="seed",
                train__computation_time=0, workflow__generate_data="false")
    base.update(more)
    return base


def train(data, out, fmt, **more):
    """Trains and returns the result, whose samples were all delivered once."""
    stoker("run", *tiny(data, out, **keys(fmt, **more)))
    training = load(out)["training"]
    assert all(e["order_proved"] for e in training["epochs"]), (fmt, more)
    return training


def every_format(tmp, direct):
    """The same samples and payload with one request at a time and with 32, whatever the store."""
    for fmt in FORMATS:
        data, out = tmp / fmt, tmp / "out"
        stoker("run", *tiny(data, out, **keys(fmt, workflow__generate_data="true", workflow__train="false",
                                              storage__store="io_uring")))
        stoker("verify", *[a for a in tiny(data, out, **keys(fmt, storage__store="io_uring"))
                           if a not in ("-q", "-o", str(out))])
        payload = None
        for store, options in (("posix", {}), ("io_uring", {}), ("io_uring", DIRECT), ("fault+io_uring", {})):
            if options and not direct:
                continue
            for depth in (32,) if SANITIZED or "+" in store else (1, 32):
                for decode, read_type in (("none", "on_demand"), ("verify", "on_demand"), ("full", "memory")):
                    if SANITIZED and decode == "none":
                        continue
                    t = train(data, out, fmt, storage__store=store, reader__queue_depth=depth,
                              reader__decode=decode, reader__read_type=read_type, **options)
                    if read_type == "memory":
                        continue
                    got = t["epochs"][0]["payload_bytes"]
                    payload = payload or got
                    assert got == payload, (fmt, store, depth, decode, got, payload)


def evaluation_and_workers(tmp):
    """Several ranks, workers and epochs, that end between and begin again."""
    data = tmp / "npz"
    stoker("run", *tiny(data, tmp / "out", **keys("npz", workflow__generate_data="true", workflow__train="false",
                                                  dataset__num_files_eval=2)))
    for persistent in ("true", "false"):
        t = train(data, tmp / "out", "npz", dataset__num_files_eval=2, workflow__evaluation="true", train__epochs=3,
                  evaluation__eval_time=0,
                  reader__read_threads=3, reader__persistent_workers=persistent, reader__batch_size=3,
                  storage__store="io_uring", reader__queue_depth=4, reader__decode="verify")
        assert len(t["epochs"]) == 3, t


def requests_of(tmp, **more):
    data = tmp / "big"
    stoker("run", *tiny(data, tmp / "out", **keys("indexed_binary", files=2, workflow__generate_data="true",
                                                  workflow__train="false", dataset__record_dims="[2621440]",
                                                  dataset__num_samples_per_file=3)))
    return train(data, tmp / "out", "indexed_binary", files=2, dataset__record_dims="[2621440]",
                 dataset__num_samples_per_file=3, reader__batch_size=6, **more)["io"]


def pieces(tmp):
    """A sample of 2.5 MiB is asked for in three requests, whatever is in flight; files are opened once."""
    for depth in (2, 5, 64):
        for decode in ("none", "verify"):
            io = requests_of(tmp, storage__store="io_uring", reader__queue_depth=depth, reader__decode=decode,
                             reader__read_type="memory")
            assert io["data"]["requests"] == 6 * 3, io["data"]
            assert io["data"]["asked_bytes"] == io["data"]["returned_bytes"] == 6 * 2621440, io["data"]
            assert io["open"]["requests"] == 2, io["open"]


def traced(tmp, depth, **more):
    """Lines of strace of a run over 64 samples of 4096 bytes in one file."""
    data, trace = tmp / "traced", tmp / "trace"
    base = dict(files=1, dataset__num_samples_per_file=64, dataset__record_dims="[4096]", reader__batch_size=64,
                reader__queue_depth=depth, reader__read_type="memory", reader__decode="none")
    if not data.exists():
        stoker("run", *tiny(data, tmp / "out", **keys("indexed_binary", workflow__generate_data="true",
                                                      workflow__train="false", **{**base, "reader__queue_depth": 1})))
    subprocess.run(["strace", "-f", "-s", "0", "-e", "trace=io_uring_enter,pread64,openat,io_uring_register", "-o",
                    trace, STOKER, "run", *map(str, tiny(data, tmp / "out", dataset__verify_samples=0,
                                                         **keys("indexed_binary", **base, **more)))],
                   check=True, capture_output=True, timeout=60)
    return trace.read_text().splitlines()


def submissions(lines):
    """How many requests each of the worker's system calls submits, and how many it waits for; other threads read
    the manifest."""
    calls = [m for m in (re.match(r"(\d+) +io_uring_enter\(\d+, (\d+), (\d+),", x) for x in lines) if m]
    worker = calls[-1].group(1)
    return [(int(m.group(2)), int(m.group(3))) for m in calls if m.group(1) == worker]


def submitted(lines):
    return [n for n, _ in submissions(lines)]


def system_calls(tmp, direct):
    # one submission of as many requests as may be in flight, of a deep queue a quarter each; none
    # twice, and no wait before all are under way; no plain read
    for depth, at_once in (4, 4), (32, 8):
        lines = traced(tmp, depth, storage__store="io_uring")
        sent = [n for n, _ in submissions(lines)]
        first = depth // at_once
        assert sent and max(sent) == at_once and sent[:first] == [at_once] * first, (depth, sent)
        assert sum(sent) == 64, (depth, sent)
        waits = [i for i, (_, wait) in enumerate(submissions(lines)) if wait]
        assert not waits or waits[0] >= first - 1, (depth, waits)
        assert not any("pread64" in x and ", 4096, " in x for x in lines), "a plain read"
    # one at a time
    lines = traced(tmp, 1, storage__store="io_uring")
    assert submitted(lines) == [1] * 64, lines
    # helper threads read, each sample once
    # (strace splits a call that another thread's interrupts: its arguments are then in the second part)
    lines = [x for x in traced(tmp, 4, storage__store="posix") if re.search(r"pread64.*, 4096, \d+\) += 4096$", x)]
    threads = {x.split()[0] for x in lines}
    assert 2 <= len(threads) <= 4, threads
    offsets = [int(m.group(1)) for m in (re.search(r", 4096, (\d+)\)?", x) for x in lines) if m]
    assert sorted(offsets) == [4096 * i for i in range(64)], sorted(offsets)
    # the options reach the kernel
    if direct:
        lines = traced(tmp, 8, storage__store="io_uring", **DIRECT,
                       storage__io_uring__registered_buffers="true")
        data = [x for x in lines if "indexed_binary\"" in x and "openat" in x]
        assert any("O_DIRECT" in x for x in data), data
        assert any("IORING_REGISTER_BUFFERS" in x and x.endswith("= 0") for x in lines), "buffers are not registered"


def refused(args, *words, **kw):
    done = stoker("run", *args, status=None, **kw)
    assert done.returncode not in (0, None) and done.returncode > 0, done
    text = " ".join(done.stderr.split())
    for word in words:
        assert word in text, (word, text)


def sentences(tmp):
    data, out = tmp / "npz", tmp / "out"
    refused(tiny(data, out, **keys("npz", reader__access="framework", reader__queue_depth=2)),
            "reader.queue_depth 2 needs reader.access native")
    refused(tiny(data, out, **keys("npz", reader__queue_depth=0)), "reader.queue_depth")
    refused(tiny(data, out, **keys("npz", reader__queue_depth=1025)), "reader.queue_depth")
    h5 = keys("hdf5", reader__queue_depth=8, dataset__record_dims="[64,64]", workflow__generate_data="true")
    refused(tiny(tmp / "h5", out, **h5, dataset__hdf5__chunk_dims="[1,64,64]"), "chunked", "reader.queue_depth 8")
    refused(tiny(tmp / "h5", out, **h5, dataset__hdf5__num_dset_per_record=2), "2 datasets", "reader.queue_depth 8")
    # a file cut short, and one that is missing
    stoker("run", *tiny(tmp / "cut", out, **keys("indexed_binary", workflow__generate_data="true",
                                                 workflow__train="false")))
    name = tmp / "cut/train/img_2_of_4.indexed_binary"
    whole = name.read_bytes()
    for store in ("posix", "io_uring"):
        for decode in ("none", "full"):
            more = dict(storage__store=store, reader__queue_depth=16, reader__decode=decode)
            name.write_bytes(whole[:-100])
            done = stoker("run", *tiny(tmp / "cut", out, **keys("indexed_binary", **more)), status=None)
            assert done.returncode == 1, done
            assert "img_2_of_4.indexed_binary" in done.stderr, done.stderr
            name.write_bytes(whole)
    # an error of one request in the middle is the run's, with its sample and file
    for fault, words in (("{op: read, nth: 7, errno: EIO}", ["sample", "reading '", "fails call 7"]),
                         ("{op: open, nth: 3, errno: EACCES}", ["cannot open", "fails call 3"])):
        refused(tiny(tmp / "cut", out, **keys("indexed_binary", reader__queue_depth=8, reader__decode="none",
                                              storage__store="fault+io_uring", storage__fault=fault)), *words)


def without_the_kernel(tmp):
    """Where the kernel has no io_uring or forbids it, one sentence says so before anything begins."""
    for code, word in (("ENOSYS", "no io_uring"), ("EPERM", "not permitted"), ("ENOMEM", "no memory"), ("EMFILE", "ulimit")):
        done = subprocess.run(["strace", "-f", "-o", "/dev/null", "-e", f"inject=io_uring_setup:error={code}", STOKER,
                               "run", *map(str, tiny(tmp / "none", tmp / "out", storage__store="io_uring"))],
                              capture_output=True, text=True, timeout=60, check=False)
        text = " ".join(done.stderr.split())
        assert done.returncode in (1, 2) and word in text, (code, done.returncode, text)
        assert not (tmp / "none").exists()


def main():
    if not re.search(r"^io_uring ", stoker("show", "stores").stdout, re.M):
        skip("this build has no io_uring (liburing was not there)")
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        first = stoker("run", *tiny(tmp / "first", tmp / "out", storage__store="io_uring"), status=None)
        if first.returncode != 0:
            skip(first.stderr.strip())
        direct = stoker("run", *tiny(tmp / "first", tmp / "out", storage__store="io_uring",
                                     **DIRECT), status=None)
        if direct.returncode != 0:
            assert "O_DIRECT" in direct.stderr, direct.stderr
        direct = direct.returncode == 0
        every_format(tmp, direct)
        evaluation_and_workers(tmp)
        pieces(tmp)
        sentences(tmp)
        if shutil.which("strace") and not SANITIZED:
            system_calls(tmp, direct)
            without_the_kernel(tmp)


main()
