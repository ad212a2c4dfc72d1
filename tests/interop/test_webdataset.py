"""Tar shards beside Python's tarfile and the WebDataset library (STOKER_PYTHON, or a Python that has it): they read ours
and we read theirs, with the same requests under strace, and the same samples in the same order for each worker."""
# tier: long
# mostly waits
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
from random import Random

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from strace_requests import explain, requests  # noqa: E402
from util import left_out, libraries, load  # noqa: E402

STOKER = os.environ["STOKER"]
TOOL = os.path.join(os.environ["STOKER_TOOLS"], "format_tool")

# what the library delivers, without a shuffle: key, extensions and bytes of each sample
READ = """
import sys, warnings
warnings.simplefilter("ignore")
import webdataset as wds
for s in wds.WebDataset(sys.argv[1:], shardshuffle=False):
    print(s["__key__"], *(f"{k}:{len(v)}:{sum(v)}" for k, v in s.items() if not k.startswith("__")))
"""
WRITE = """
import sys, webdataset as wds
with wds.TarWriter(sys.argv[1]) as out:
    for i in range(int(sys.argv[2])):
        n = int(sys.argv[3])
        data = bytes((o * 131 + (o >> 8) * 7 + (o >> 16) * 13 + 3 * 17 + 5) & 255 for o in range(i * n, i * n + n))
        out.write({"__key__": sys.argv[4] + str(i), "bin": data, "cls": i, "json": {"a": i}})
"""
ORDER = """
import os, sys, warnings
warnings.simplefilter("ignore")
import webdataset as wds
rank, ranks, worker, workers, files, size, initial, seed, epoch = map(int, sys.argv[1:10])
os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), WORKER=str(worker), NUM_WORKERS=str(workers))
d = wds.WebDataset(sys.argv[10:], shardshuffle=files or False, detshuffle=True, seed=seed,
                   nodesplitter=wds.split_by_node)
if size:
    d = d.compose(wds.detshuffle(size, initial, seed))
for _ in range(epoch):
    keys = [s["__key__"] for s in d]
print(*keys)
"""


def library():
    for python in (os.environ.get("STOKER_PYTHON"), libraries(), "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", "import webdataset"], capture_output=True).returncode == 0:
            minor = subprocess.run([python, "-c", "import sys; print(sys.version_info[1])"], capture_output=True,
                                   text=True).stdout
            return python, "314" if int(minor) >= 14 else "311"
    return None, None


def fill(file_index, offset, n):
    """tests/tools/test_content.h"""
    return bytes((o * 131 + (o >> 8) * 7 + (o >> 16) * 13 + file_index * 17 + 5) & 255
                 for o in range(offset, offset + n))


def run(*args, ok=True):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True)
    assert (done.returncode == 0) == ok, (args, done.stdout, done.stderr)
    return done.stdout if ok else done.stderr


def read(path, samples, n, index=None, how="framework", decode="verify", python="311"):
    return [TOOL, "read", "webdataset", how, decode, python, "0", str(samples - 1 if index is None else index), path, "3",
            "uint8", str(samples), str(n)]


def with_tarfile(folder):
    path = os.path.join(folder, "ours.tar")
    for samples, n in ((1, 1), (3, 512), (7, 5000), (2, 300000), (0, 5)):
        run(TOOL, "write", "webdataset", path, 3, "uint8", samples, n)
        assert os.path.getsize(path) % tarfile.RECORDSIZE == 0
        with tarfile.open(path, "r:") as t:
            members = t.getmembers()
            assert [m.name for m in members] == [f"000003_{i:06}.{e}" for i in range(samples) for e in ("bin", "cls")]
            for i in range(samples):
                assert t.extractfile(members[2 * i]).read() == fill(3, i * n, n)
                assert t.extractfile(members[2 * i + 1]).read().isdigit()
        for how in ("framework", "native") if samples else ():
            run(*read(path, samples, n, how=how))

    path = os.path.join(folder, "theirs.tar")
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        for prefix in ("", "a/b.c/", "long/" * 30, "\u00e9" * 20 + "/"):
            with tarfile.open(path, "w", format=form) as t:
                for i in range(4):
                    other = tarfile.TarInfo(prefix + "folder")
                    other.type = tarfile.DIRTYPE
                    t.addfile(other)
                    for name, data in ((f"{prefix}{i}.txt", b"t" * 700), (f"{prefix}{i}.bin", fill(3, i * 777, 777)),
                                       (f"{prefix}nodot", b"x"), ("__meta__", b"m")):
                        if form == tarfile.USTAR_FORMAT and len(name.encode()) > 100:
                            continue
                        member = tarfile.TarInfo(name)
                        member.size = len(data)
                        member.mtime = 1.5 if form == tarfile.PAX_FORMAT else 1
                        t.addfile(member, io.BytesIO(data))
            if form != tarfile.USTAR_FORMAT or len(prefix) < 50:
                for index in (0, 3):
                    run(*read(path, 4, 777, index))
    return path


def hostile(folder):
    path = os.path.join(folder, "hostile.tar")
    good = tarfile.TarInfo("0.bin")
    good.size = 777

    def refused(blocks, words):
        with open(path, "wb") as f:
            f.write(blocks)
        said = run("sh", "-c", "ulimit -v 400000; exec \"$@\"", "sh", *read(path, 1, 777, 0), ok=False) \
            if not os.environ.get("STOKER_SANITIZE") else run(*read(path, 1, 777, 0), ok=False)
        assert words in said and said.count("\n") == 1, said

    head = good.tobuf(tarfile.USTAR_FORMAT)
    refused(b"", "truncated")
    refused(b"x" * 1024, "not a tar header")
    refused(head[:300], "truncated")
    refused(head + b"d" * 700, "truncated")
    for size, words in ((10 ** 9, "a sample of the workload has 777"), (8 ** 11 - 1, "a sample of the workload")):
        good.size = size
        refused(good.tobuf(tarfile.USTAR_FORMAT), words)
    for kind in (b"x", b"L"):
        good.size, good.type = 2 ** 33 - 1, kind
        refused(good.tobuf(tarfile.USTAR_FORMAT), "at most")
    good.size, good.type = 777, b"S"
    refused(good.tobuf(tarfile.GNU_FORMAT), "sparse")
    # a chain of headers that never come to a member
    good.size, good.type = 0, b"x"
    refused(good.tobuf(tarfile.USTAR_FORMAT) * 20000, "truncated")
    # names that lead elsewhere are only names
    good.type, good.name, good.size = tarfile.REGTYPE, "../../etc/0.bin", 777
    with open(path, "wb") as f:
        f.write(good.tobuf(tarfile.USTAR_FORMAT) + fill(3, 0, 777).ljust(1024, b"\0") + bytes(1024))
    run(*read(path, 1, 777, 0))


def beside_the_library(folder, python, generation):
    path, compared = os.path.join(folder, "s.tar"), 0
    for samples, n, prefix in ((1, 1, "s"), (5, 3000, "s"), (40, 1000, "s"), (6, 200000, "s"), (4, 3000, "long" * 40)):
        for theirs in (False, True):
            if theirs:
                run(python, "-c", WRITE, path, samples, n, prefix)
            elif prefix == "s":
                run(TOOL, "write", "webdataset", path, 3, "uint8", samples, n)
                lines = run(python, "-c", READ, path).splitlines()
                assert len(lines) == samples
                for i, line in enumerate(lines):
                    data = fill(3, i * n, n)
                    assert line.startswith(f"000003_{i:06} bin:{n}:{sum(data)} cls:"), line
            else:
                continue
            for block in (None, 512, 65536, 1 << 20):
                real, _ = requests([python, "-c", READ, path], path, block)
                mine, _ = requests(read(path, samples, n, python=generation), path, block)
                compared += len(real)
                if real != mine:
                    explain(f"{samples} samples of {n}, theirs {theirs}, request size {block}", real, mine)
                    raise SystemExit(1)
    print(f"{compared} requests are the same")


# members of a sample, of shards as people make them: extensions and the largest size of each
FOREIGN = ({"jpg": 60000, "cls": 2, "json": 900}, {"input.png": 9000, "seg.png": 3000, "txt": 0}, {"JPG": 20000}, {"bin": 5000})


def foreign(path, form, members, prefix, random, mode="w"):
    """A shard of others: samples of unequal sizes, with what belongs to none between them."""
    with tarfile.open(path, mode, format=form) as t:
        def add(name, n, kind=tarfile.REGTYPE):
            member = tarfile.TarInfo(name)
            member.size, member.type = n, kind
            t.addfile(member, io.BytesIO(random.randbytes(n)))

        add("__info__/a.txt", 40)
        for i in range(9):
            if i % 4 == 1:
                add(f"{prefix}d{i}", 0, tarfile.DIRTYPE)
                add(f"{prefix}README", 600)
            for extension, most in members.items():
                add(f"{prefix}{i:04}.{extension}", random.randint(0, most))


def foreign_shards(folder, python, generation):
    """Whoever decodes nothing reads any shard, with the library's requests, to the library's last sample and no further."""
    path, random, shards, compared = os.path.join(folder, "foreign.tar"), Random(7), 0, 0
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        for k, members in enumerate(FOREIGN):
            prefix = ("", "train/n0144.x/", "long/" * 40)[k % 3 if form != tarfile.USTAR_FORMAT else k % 2]
            foreign(path, form, members, prefix, random, "w:gz" if k == 2 else "w")
            lines = run(python, "-c", READ, path).splitlines()
            assert len(lines) == 9 and lines[3].split()[0] == f"{prefix}0003", lines
            real, _ = requests([python, "-c", READ, path], path, None)
            mine, _ = requests(read(path, 9, 1234, decode="none", python=generation), path, None)
            if real != mine:
                explain(f"{members}, format {form}", real, mine)
                raise SystemExit(1)
            for wrong, words in ((8, "continues after its 8 samples"), (10, "ends after 9 samples")):
                said = run(*read(path, wrong, 1234, decode="none"), ok=False)
                assert words in said and said.count("\n") == 1, said
            # what is decoded is the payload that this program writes
            said = run(*read(path, 9, 1234), ok=False)
            assert ("of the workload has 1234" if "bin" in members else "no member with the extension") in said, said
            shards += 1
            compared += len(real)
    print(f"{shards} shards of others are read to their end, with {compared} requests of the library's")


def told(python, path):
    """What the library makes of a shard: the number of its samples, or None where it ends with an error."""
    done = subprocess.run([python, "-c", READ, str(path)], capture_output=True, text=True)
    return len(done.stdout.splitlines()) if done.returncode == 0 else None


def shard(path, names, end=True, mode="w"):
    with tarfile.open(path, mode) as t:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 700
            t.addfile(member, io.BytesIO(b"x" * 700))
    if not end:
        with open(path, "r+b") as f:
            f.truncate(1536 * len(names))


def foreign_folder(folder, python):
    """A folder of shards that others wrote is run as it is, to each shard's end; samples are the library's."""
    data = pathlib.Path(folder, "cc3m")
    data.mkdir()
    files = {
        "cc3m-train-0003.tar": [f"{i:05}.{e}" for i in range(12) for e in ("jpg", "json", "txt")],
        "cc3m-train-0004.tar": [f"./{i:05}.{e}" for i in range(12) for e in ("CLS", "seg.png")],
        # members of a sample that are apart, of hidden names, without a dot, and of a sample that says it is none
        "cc3m-train-0005.tar": ["a.jpg", "b.jpg", "a.txt", ".hidden", "d/.x", "d/.y", "d.e/.x", "README", "__meta__/x.jpg", "c.__bad__", "c.jpg", "z.jpg"],
        "cc3m-train-0006.tar.gz": [f"{'long/' * 40}{i}.npy" for i in range(9)],
        "cc3m-train-0007.tar": [],
        "cc3m-train-0008.tar": [f"{i}.jpg" for i in range(5)],
    }
    for name, names in files.items():
        shard(data / name, names, end=name[14] != "8", mode="w:gz" if name.endswith("gz") else "w")
    (data / "sizes.json").write_text("{}")
    # the library ends with an error where nothing but an empty shard was named
    counts = [told(python, data / name) or 0 for name in files]
    assert counts == [12, 12, 5, 9, 0, 5], counts
    out = pathlib.Path(folder, "out_foreign")
    for workers in (1, 2):
        keys = {"reader.decode": "none", "reader.batch_size": 1, "reader.read_threads": workers, "train.epochs": 2, "train.computation_time": 0.0001}
        run(STOKER, "run", "--data", data, "--output", out, *(f"{k}={v}" for k, v in keys.items()))
        epochs = load(out)["training"]["epochs"]
        assert [(e["order_proved"], e["samples"]) for e in epochs] == [(True, sum(counts))] * 2, epochs
    for name, names, words in (("twice", ["a.jpg", "a.JPG", "b.jpg"], "is there twice"), ("keys", ["a.__key__"], "is there twice")):
        path = data / f"{name}.tar"
        shard(path, names)
        said = run(STOKER, "run", "--data", data, "--output", out, ok=False)
        assert told(python, path) is None and words in said and f"{name}.tar" in said, said
        path.unlink()
    print(f"a folder of shards that others wrote: {sum(counts)} samples, as the library counts them")


def job(folder, data, **more):
    keys = {"framework": "pytorch", "dataset.format": "webdataset", "dataset.data_folder": data,
            "dataset.num_files_train": 13, "dataset.num_samples_per_file": 9, "dataset.record_length_bytes": 3600,
            "reader.data_loader": "webdataset", "reader.batch_size": 1, "reader.file_shuffle": "seed",
            "reader.sample_shuffle": "seed", "reader.shuffle_size": 20, "reader.shuffle_initial": 5,
            "reader.file_shuffle_size": 3, "train.seed": 77, "train.epochs": 2, "train.computation_time": 0.0001, **more}
    return [f"{k}={v}" for k, v in keys.items()]


def order_of_workers(folder, python):
    """The order of the library's workers, and the files that ours open, in turn."""
    data, looked = os.path.join(folder, "data"), 0
    spec = os.path.join(folder, "job.yaml")
    with open(spec, "w") as f:
        f.write("framework: pytorch\n")
    run(STOKER, "generate", spec, *job(folder, data))
    shards = sorted(pathlib.Path(data, "train").glob("*.tar"))
    assert len(shards) == 13
    for ranks, workers in ((1, 2), (2, 3), (4, 1)):
        out = os.path.join(folder, f"out{ranks}{workers}")
        log = os.path.join(folder, "log")
        run("strace", "-f", "-y", "-s", "0", "-e", "trace=openat", "-o", log, "--", STOKER, "run", spec, "--ranks", ranks,
            "--output", out, *job(folder, data, **{"reader.read_threads": workers}))
        opened = {}
        for line in open(log):
            if ".tar" in line and " = -1" not in line and "/train/" in line and "<unfinished" not in line:
                thread, name = line.split()[0], line.rsplit("/train/", 1)[1].split(".tar")[0]
                opened.setdefault(thread, []).append(name)
        mine = sorted(v for v in opened.values() if len(v) > 1)
        real = []
        for rank in range(ranks):
            for worker in range(workers):
                names = []
                for epoch in (1, 2):
                    keys = run(python, "-c", ORDER, rank, ranks, worker, workers, 3, 0, 0, 77, epoch, *shards).split()
                    order = list(dict.fromkeys(k.split("_")[0] for k in keys))
                    names += [shards[int(k)].stem for k in order]
                real.append(names)
        assert {tuple(v) for v in real} <= {tuple(v) for v in mine}, (ranks, workers, sorted(real), mine)
        looked += len(real)
    print(f"{looked} workers open the shards of the library's, in its order")


def main():
    with tempfile.TemporaryDirectory() as folder:
        with_tarfile(folder)
        hostile(folder)
        print("Python's tarfile and ours read each other's shards; hostile ones are refused")
        python, generation = library()
        if not python:
            left_out("the library: no Python here has webdataset (tools/setup.sh heavy; STOKER_PYTHON names another one)")
            return
        beside_the_library(folder, python, generation)
        foreign_shards(folder, python, generation)
        foreign_folder(folder, python)
        order_of_workers(folder, python)


main()
