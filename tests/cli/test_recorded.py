"""dataset.sizes, reader.order and reader.access of `recorded`: files have the sizes, samples come in the order and are read
with the requests of the file beside the workload, which is written here by another implementation of its format; damaged
ones are refused with a sentence."""
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from recorded_file import framed, recorded  # noqa: E402
from util import SANITIZED, STOKER, left_out, load, stoker  # noqa: E402


def run(tmp, *keys, ranks=1, under=(), generate="true", status=0):
    out = tmp / "out"
    shutil.rmtree(out, ignore_errors=True)
    done = subprocess.run([*under, STOKER, "run", tmp / "job.yaml", "-n", str(ranks), "-o", out,
                           f"workflow.generate_data={generate}", "dataset.verify_samples=0", "storage.page_cache_files=0",
                           *keys], capture_output=True, text=True, timeout=60, cwd="/")
    assert done.returncode == status, (keys, done.returncode, done.stderr)
    return done.stdout + done.stderr if status else (load(out), done.stdout + done.stderr)


def opened(tmp, *keys, ranks=1):
    """Numbers of the files that each rank opens, in order; ranks read themselves."""
    trace = tmp / "trace"
    run(tmp, "reader.read_threads=0", *keys, ranks=ranks, generate="false",
        under=("strace", "-f", "-e", "trace=openat,prctl", "-o", trace))
    files = {}
    for line in trace.read_text().splitlines():
        m = re.match(r'^(\d+) +openat\(AT_FDCWD, "[^"]*/train/img_(\d+)_of', line)
        if m:
            files.setdefault(int(m[1]), []).append(int(m[2]))
    return [files[t] for t in sorted(files)]


def asked(tmp, *keys):
    """(offset, bytes) of all reads of the dataset, with the opens, by a rank that reads itself."""
    trace = tmp / "trace"
    run(tmp, "reader.read_threads=0", *keys, generate="false",
        under=("strace", "-f", "-y", "-e", "trace=openat,pread64", "-s", "0", "-o", trace))
    out, begun = [], {}
    for line in trace.read_text().splitlines():
        pid, line = line.split(" ", 1)
        if line.endswith("<unfinished ...>"):
            begun[pid] = line.removesuffix("<unfinished ...>").strip()
            continue
        if m := re.match(r" *<\.\.\. \w+ resumed>(.*)", line):
            line = begun.pop(pid, "") + " " + m[1].strip()
        m = re.search(r'pread64\(\d+</[^>]*/train/img_(\d+)_of[^>]*>, +""\.\.\., (\d+), (\d+)', line)
        if m:
            out.append((int(m[1]), int(m[3]), int(m[2])))
        elif m := re.search(r'openat\(.*/train/img_(\d+)_of', line):
            out.append((int(m[1]), "open"))
    return out


def requests(tmp, r):
    """Three files of four samples, read as a job did that kept them open or did not."""
    files, each = 3, 4
    order = [r.sample(range(files * each), files * each) for _ in range(2)]
    lists = []
    for i in range(files):
        lists += [[(0, 8), (8, 100 + i)]] + [[(2048 + 1000 * k, 700 + k), (4096 * k, 64)] for k in range(each)]
    (tmp / "requests").write_bytes(recorded(1, [(files, each, None, [[v] for v in order]), (0, 1, None, [])], [lists, []]))
    keys = ("dataset.format=hdf5", "dataset.num_files_train=3", "dataset.num_samples_per_file=4", "dataset.sizes=computed",
            "dataset.record_length_bytes=5000", f"dataset.recorded_file={tmp}/requests", f"dataset.data_folder={tmp}/many",
            "reader.access=recorded")
    run(tmp, *keys)
    for kept in False, True:
        want, seen = [], set()
        for sample in order[0] + order[1]:
            f = sample // each
            if f not in seen:
                want += [(f, "open")] + [(f, *q) for q in lists[f * (each + 1)]]
            want += [(f, *q) for q in lists[f * (each + 1) + 1 + sample % each]]
            if kept:
                seen.add(f)
        got = asked(tmp, *keys, f"reader.read_type={'memory' if kept else 'on_demand'}")
        assert got == want, (kept, next((i, a, b) for i, (a, b) in enumerate(zip(got + [0], want + [0])) if a != b))
    for more, words in ((("reader.decode=verify",), "reader.decode"), (("reader.queue_depth=2",), "queue_depth"),
                        (("framework=tensorflow", "dataset.format=tfrecord"), "reader."), (("dataset.format=synthetic",), "synthetic"),
                        ((f"dataset.recorded_file={tmp}/job.recorded", "dataset.num_files_train=12", "dataset.num_samples_per_file=1"),
                         "no requests of training")):
        said = run(tmp, *keys, *more, status=2)
        assert words in said, (more, said)
    # what the job's reader did beside its requests, in place of the framework's costs
    said = run(tmp, *keys, "reader.recorded_work=true", status=2)
    assert "does not have what the job's workers computed" in said, said
    part = [(files, each, None, [[v] for v in order]), (0, 1, None, [])]
    (tmp / "requests").write_bytes(recorded(1, part, [lists, []], [[0] + [3000, 500, 1000, 7500] + ([0] + 4 * [0]) * 2, []]))
    result, _ = run(tmp, *keys, "reader.recorded_work=true", "reader.read_threads=2", "framework.costs=torch-1.13")
    spent = result["ranks"][0]["preprocess_s"]
    assert 0.024 <= spent < 0.5, spent  # of a file, in two epochs
    said = run(tmp, *keys, "reader.recorded_work=true", "reader.preprocess_time=0.1", status=2)
    assert "give one of them" in said, said
    return (tmp / "requests").read_bytes()


def order_of(result):
    return next(v for v in result["verdicts"] if v["check"] == "order")


def main():
    r = random.Random(3)
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        # a sample twice, one never; epochs of different order; a shorter last one
        sizes = [r.randrange(4000, 60000) for _ in range(12)]
        first, second = r.sample(range(12), 12), r.sample(range(12), 12)
        first[3] = first[7]
        good = recorded(1, [(12, 1, sizes, [[first], [second]]), (0, 1, None, [])])
        (tmp / "job.recorded").write_bytes(good)
        (tmp / "job.yaml").write_text(
            "framework: pytorch\n"
            "workflow: {train: true}\n"
            f"dataset: {{format: npz, data_folder: {tmp}/data, num_files_train: 12, sizes: recorded,\n"
            "  recorded_file: job.recorded}\n"
            "reader: {batch_size: 2, read_threads: 2, order: recorded}\n"
            "train: {epochs: 2, computation_time: 0}\n")

        for fmt, off in ("npz", 0), ("npy", 0), ("hdf5", 0), ("png", 0), ("jpeg", 0):
            shutil.rmtree(tmp / "data", ignore_errors=True)
            result, said = run(tmp, f"dataset.format={fmt}")
            got = [f.stat().st_size for f in sorted((tmp / "data/train").iterdir())]
            far = max(abs(a - b) for a, b in zip(got, sizes))
            assert far <= off, (fmt, far, got, sizes)
            assert ("not exactly as large as recorded" in said) == (got != sizes), (fmt, said)
            assert order_of(result)["level"] == "pass" and "recorded order" in str(order_of(result)["facts"]), order_of(result)
            print(f"   {fmt}: sizes within {far} bytes; order proved")
            # the result is judged again from its folder alone
            (tmp / "job.recorded").rename(tmp / "elsewhere")
            audit = json.loads(stoker("audit", tmp / "out", "--json").stdout)["results"][0]
            assert not [f for f in audit["findings"] if f["level"] == "fail" and f["check"] not in (
                v["check"] for v in result["verdicts"] if v["level"] == "fail")], audit["findings"]
            (tmp / "elsewhere").rename(tmp / "job.recorded")

        # the files of epochs, in their order; other numbers of epochs and ranks
        shutil.rmtree(tmp / "data", ignore_errors=True)
        run(tmp)
        if shutil.which("strace") and not SANITIZED:
            assert opened(tmp) == [first + second], (opened(tmp), first, second)
            assert opened(tmp, "train.epochs=3") == [first + second + first]
            two = opened(tmp, "train.epochs=1", ranks=2)
            assert sorted(two) == sorted([first[0::2], first[1::2]]), (two, first)
            # recorded of two ranks: each keeps its own order
            one, other = first[:6], second[:6]
            (tmp / "two").write_bytes(recorded(2, [(12, 1, sizes, [[one, other]]), (0, 1, None, [])]))
            two = opened(tmp, "train.epochs=1", f"dataset.recorded_file={tmp}/two", ranks=2)
            assert sorted(two) == sorted([one, other]), (two, one, other)
            asks = requests(tmp, r)
        else:
            left_out("the order of opens: strace is missing, or this is a sanitizer build")

        # what does not fit, and what is damaged
        for keys, words in ((("dataset.num_files_train=8",), "12"),
                            (("dataset.recorded_file=/nowhere/x",), "/nowhere/x"),
                            (("dataset.recorded_file=",), "dataset.recorded_file"),
                            (("dataset.file_bytes=1000",), "both give the size"),
                            (("dataset.num_samples_per_file=2",), "num_samples_per_file"),
                            (("reader.order=recorded", "framework=tensorflow", "dataset.format=tfrecord"), "order")):
            said = run(tmp, *keys, status=2)
            assert words in said, (keys, said)
        hostile = [good[:n] for n in range(0, len(good), 7)] + [good + b"x", framed(b""), framed(good[24:-1]),
                   framed(struct.pack("<II", 1, 0) + struct.pack("<QQQQ", 1 << 62, 1 << 62, 1, 1 << 60)),
                   framed(struct.pack("<II", 9, 0) + struct.pack("<QQQQ", 1, 1, 0, (1 << 64) // 9)),
                   framed(struct.pack("<II", 0, 0)), recorded(1, [(12, 1, sizes, [[[12]]]), (0, 1, None, [])]),
                   recorded(1, [(12, 1, [1 << 63] * 12, []), (0, 1, None, [])]),
                   good[:100] + bytes([good[100] ^ 1]) + good[101:]]
        if shutil.which("strace") and not SANITIZED:
            hostile += [framed(asks[24:n], 3) for n in range(28, len(asks), 61)]
            hostile += [framed(asks[24:-72] + struct.pack("<QI", 1 << 63, 1), 2), framed(asks[24:], 2)]
        bad = tmp / "bad"
        for text in hostile[::9] + hostile[-9:]:
            bad.write_bytes(text)
            said = run(tmp, f"dataset.recorded_file={bad}", status=2)
            assert f"{bad}: " in said and len(said.strip().splitlines()) == 1, said
        print(f"   {len(hostile[::9]) + 9} damaged files: a sentence each")


main()
