"""The tensorflow loader from outside: the system calls of an epoch over TFRecord files are tf.data's (who
opens what and when, sizes and offsets of reads for each buffer_size), and runs of every shape deliver each
sample once."""
# tier: long
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, STOKER, load, stoker, tiny  # noqa: E402

FILES, RECORDS = 13, 6
TF = dict(fmt="tfrecord", files=FILES, framework="tensorflow", reader__data_loader="tensorflow",
          dataset__num_samples_per_file=RECORDS, dataset__record_length_bytes=100000, reader__batch_size=2,
          train__computation_time=0)


class Trace:
    """Per thread name: a list of ("open", file), ("read", file, offset, asked, got), ("close", file)."""

    def __init__(self, path):
        names, fds, pending = {}, {}, {}
        self.calls, self.all = {}, []
        for line in path.read_text().splitlines():
            pid, call = re.match(r"^(\d+)\s+(.*)$", line).groups()
            m = re.match(r'prctl\(PR_SET_NAME, "([^"]*)"', call)
            if m:
                names[pid] = m.group(1)
            if call.endswith("<unfinished ...>"):
                pending[pid] = call[:-len("<unfinished ...>")]
                # the number may be another file's before close returns
                if call.startswith("close("):
                    self.note(names.get(pid, "?"), call, fds)
                continue
            m = re.match(r"<\.\.\. \w+ resumed>(.*)$", call)
            if m:
                call = pending.pop(pid) + m.group(1)
                if call.startswith("close("):
                    continue
            self.note(names.get(pid, "?"), call, fds)

    def note(self, name, call, fds):
        m = re.match(r'openat\(AT_FDCWD, "[^"]*/train/([^"]*tfrecord)", O_RDONLY[^)]*\)\s*= (\d+)', call)
        event = None
        if m:
            fds[m.group(2)] = m.group(1)
            event = ("open", m.group(1))
        m = re.match(r"pread64\((\d+), .*, (\d+), (\d+)\)\s*= (\d+)", call)
        if m and m.group(1) in fds:
            event = ("read", fds[m.group(1)], int(m.group(3)), int(m.group(2)), int(m.group(4)))
        m = re.match(r"close\((\d+)\b", call)
        if m and m.group(1) in fds:
            event = ("close", fds.pop(m.group(1)))
        if event:
            self.calls.setdefault(name, []).append(event)
            self.all.append(event)


def traced(tmp, data, **keys):
    trace = tmp / "trace"
    subprocess.run(["strace", "-f", "-s", "32", "-e", "trace=openat,pread64,close,prctl", "-o", trace, STOKER, "run",
                    *map(str, tiny(data, tmp / "out", workflow__generate_data="false", storage__page_cache_files=0, dataset__verify_samples=0,
                                   **{**TF, **keys}))],
                   check=True, capture_output=True, timeout=60)
    assert load(tmp / "out")["training"]["epochs"][0]["order_proved"]
    return Trace(trace)


def whole_file(path, transfer):
    """The preads of a file that is read from begin to end."""
    size = os.path.getsize(path)
    if transfer == 0:
        reads, at, content = [], 0, path.read_bytes()
        while at < size:
            length = struct.unpack_from("<Q", content, at)[0]
            reads += [(at, 12, 12), (at + 12, length + 4, length + 4)]
            at += 16 + length
        return reads + [(size, 12, 0)]
    reads = [(at, transfer, transfer) for at in range(0, size - transfer + 1, transfer)]
    left = size % transfer
    # a short read is followed by one for the rest of the buffer, which finds the end
    return reads + ([(size - left, transfer, left), (size, transfer - left, 0)] if left else [(size, transfer, 0)])


def name(i):
    return f"img_{i:02d}_of_{FILES}.tfrecord"


def requests(tmp):
    data = tmp / "data"
    stoker("generate", *tiny(data, None, **TF))
    for k, transfer in ((0, 262144), (1, 65536), (2, None), (2, 0)):
        keys = {} if transfer is None else {"reader__transfer_size": transfer}
        t = traced(tmp, data, reader__read_threads=k, **keys)
        for i in range(FILES):
            path = data / "train" / name(i)
            assert [e for e in t.all if e[0] == "open" and e[1] == name(i)] == [("open", name(i))], (k, i)
            got = [e[2:] for e in t.all if e[0] == "read" and e[1] == name(i)]
            assert got == whole_file(path, 262144 if transfer is None else transfer), (k, transfer, i, got)
            # a file is one thread's from its opening to its end
            assert len([n for n, c in t.calls.items() if any(e[1] == name(i) for e in c)]) == 1
        if k == 0:
            order = [e[1] for e in t.all if e[0] == "open"]
            assert order == [name(i) for i in range(FILES)], order
            continue
        # the first 3k files have a thread each, and each thread goes on when its file has ended
        for w in range(3 * k):
            mine = [e[1] for e in t.calls[f"w0.{w}"] if e[0] == "open"]
            assert mine[0] == name(w) and mine == sorted(mine), (w, mine)
            events = [e for e in t.calls[f"w0.{w}"] if e[0] != "read"]
            assert all(a[0] != b[0] for a, b in zip(events, events[1:])), events
        assert len([n for n in t.calls if n.startswith("w0.")]) == 3 * k
    # with file_shuffle the files come in another order, each still once and read through
    t = traced(tmp, data, reader__read_threads=0, reader__file_shuffle="seed")
    order = [e[1] for e in t.all if e[0] == "open"]
    assert sorted(order) == [name(i) for i in range(FILES)] and order != sorted(order), order
    print("   requests of an epoch: as tf.data's")


def shapes(tmp):
    runs = 0
    for fmt, files, samples, extra in (("tfrecord", 12, 1, {}), ("tfrecord", 3, 16, {}), ("npz", 12, 4, {}),
                                       ("hdf5", 12, 1, {})):
        data = tmp / f"{fmt}{files}"
        keys = dict(TF, fmt=fmt, files=files, dataset__num_samples_per_file=samples,
                    dataset__record_length_bytes=2000, dataset__num_files_eval=8, workflow__evaluation="true",
                    evaluation__eval_time=0, reader__batch_size_eval=1, **extra)
        stoker("generate", *tiny(data, None, **keys))
        for ranks in (1, 4):
            for threads, prefetch, calls, how, block in ((0, 0, 0, "reads", 1), (1, 2, 1, "one", 1), (3, -1, -1, "reads", 1),
                                                         (2, 1, 0, "calls", 3), (3, 0, 0, "one", 2)):
                stoker("run", "-n", ranks, *tiny(
                    data, tmp / "out", workflow__generate_data="false", reader__sample_shuffle="seed",
                    reader__shuffle_size=7, reader__decode="verify", reader__read_threads=threads,
                    reader__prefetch_size=prefetch, reader__computation_threads=calls, train__epochs=2,
                    reader__interleave=how, reader__block_length=block,
                    **{**keys, "reader__batch_size": 1}))
                for epoch in load(tmp / "out")["training"]["epochs"]:
                    assert epoch["order_proved"], (fmt, ranks, threads)
                    assert epoch["samples"] == files * samples, epoch
                runs += 1
    print(f"   {runs} runs proved")


def compat(tmp):
    """DLIO's own pipeline: file_shuffle is lost, files are cut to whole steps, one batch too many is read."""
    keys = dict(TF, dataset__num_samples_per_file=1, compat__dlio="true", reader__file_shuffle="seed",
                reader__read_threads=0)
    data = tmp / "compat"
    stoker("generate", *tiny(data, None, **keys))
    if SANITIZED or not shutil.which("strace"):
        return
    t = traced(tmp, data, **{k: v for k, v in keys.items() if k not in TF or TF[k] != v})
    order = [e[1] for e in t.all if e[0] == "open"]
    used = [name(i) for i in range(FILES - FILES % 2)]
    # and, because the records are repeated, the stages read on
    assert order[:len(used)] == used and 2 <= len(order) - len(used), order
    assert order[len(used):] == (used * 2)[:len(order) - len(used)], order


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        if SANITIZED or not shutil.which("strace"):
            print("   requests are not looked at: strace is not there, or a sanitizer is")
        else:
            requests(tmp)
        shapes(tmp)
        compat(tmp)


if __name__ == "__main__":
    main()
