"""MDS shards and LitData's chunks beside MosaicML Streaming and LitData (STOKER_PYTHON, or a Python that has them): they read
ours and we read theirs; under strace, the workers of both ask the same files for the same bytes in the same order, and, of a
remote dataset, download the same shards and remove the same ones, in the same order."""
# tier: long
# mostly waits
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from s3_server import S3Server  # noqa: E402
from util import LIBRARIES_OF_CHUNKS, left_out, libraries  # noqa: E402

STOKER = os.environ["STOKER"]
TOOL = os.path.join(os.environ["STOKER_TOOLS"], "format_tool")

# Debian's PyTorch lacks names that newer ones have, and neither library needs transformers to read samples.
IMPORT = """
import sys, types, warnings
warnings.simplefilter("ignore")
import torch
for n in ("uint16", "uint32", "uint64"):
    if not hasattr(torch, n):
        setattr(torch, n, n)
for name in ("transformers", "transformers.feature_extraction_utils", "transformers.tokenization_utils_base",
             "streaming.text", "streaming.vision", "streaming.multimodal"):
    sys.modules[name] = m = types.ModuleType(name)
    m.BatchFeature = m.BatchEncoding = type("Unused", (dict,), {})
"""
USE = {"mds": IMPORT + "from streaming import MDSWriter, StreamingDataset\n",
       "litdata": IMPORT + "from litdata import StreamingDataset, StreamingDataLoader\n"
                           "from litdata.streaming.writer import BinaryWriter\n"}
# every sample: bytes, their sum, label
READ = {"mds": "ds = StreamingDataset(local=sys.argv[1], shuffle=False, batch_size=1)\n",
        "litdata": "ds = StreamingDataset(sys.argv[1])\n"}
TELL = "for i in range(len(ds)):\n    s = ds[i]\n    print(len(s['data']), sum(s['data']), int(s['label']))\n"
FILL = """
import json
def fill(file_index, offset, n):
    return bytes((o * 131 + (o >> 8) * 7 + (o >> 16) * 13 + file_index * 17 + 5) & 255 for o in range(offset, offset + n))
for folder, samples, n, columns in json.loads(sys.argv[1]):
    def value(kind, i):
        return fill(3, i * n, n) if kind == "payload" else i if kind == "int" else "s" * i if kind == "str" else b"b" * (i + n + 1)
    items = [{name: value(kind, i) for name, kind in columns.items()} for i in range(samples)]
"""
WRITE = {"mds": """
    with MDSWriter(out=folder, columns={k: v.replace("payload", "bytes") for k, v in columns.items()}) as out:
        for item in items:
            out.write(item)
""", "litdata": """
    out = BinaryWriter(folder, chunk_size=samples)
    for i, item in enumerate(items):
        out.add_item(i, item)
    out.done()
    out.merge()
"""}
# epochs of the library's own loader, whose workers are processes; all cases in one process
LOAD = """
import json
from torch.utils.data import DataLoader
folder, seed, batch, epochs = sys.argv[1], *map(int, sys.argv[2:5])
for shuffle, workers, algorithm in json.loads(sys.argv[5]):
"""
LOADER = {"mds": """
    ds = StreamingDataset(local=folder, shuffle=bool(shuffle), shuffle_seed=seed, batch_size=batch, shuffle_algo=algorithm)
    dl = DataLoader(ds, batch_size=batch, num_workers=workers)
""", "litdata": """
    ds = StreamingDataset(folder, shuffle=bool(shuffle), seed=seed)
    dl = StreamingDataLoader(ds, batch_size=batch, num_workers=workers)
"""}
# the same of a remote dataset, each with a cache of its own
REMOTE = """
import json, os
from torch.utils.data import DataLoader
folder, seed, batch, epochs = sys.argv[1], *map(int, sys.argv[2:5])
for number, (shuffle, workers, limit, ahead) in enumerate(json.loads(sys.argv[5])):
    cache = os.path.join(sys.argv[6], str(number))
"""
REMOTE_LOADER = {"mds": """
    ds = StreamingDataset(remote=folder, local=cache, shuffle=bool(shuffle), shuffle_seed=seed, batch_size=batch,
                          cache_limit=limit or None, predownload=ahead or None)
    dl = DataLoader(ds, batch_size=batch, num_workers=workers)
""", "litdata": """
    ds = StreamingDataset("local:" + folder, cache_dir=cache, shuffle=bool(shuffle), seed=seed, max_cache_size=limit or "100GB",
                          max_pre_download=ahead or 2)
    dl = StreamingDataLoader(ds, batch_size=batch, num_workers=workers)
"""}
EPOCHS = """
    for _ in range(epochs):
        for _ in dl:
            pass
"""
NAMES = {"mds": "shard.00000.mds", "litdata": "chunk-0-0.bin"}
SUFFIX = {"mds": ".mds", "litdata": ".bin"}


def environment():
    """LitData would look for another cache and for a newer version of itself."""
    return dict(os.environ, LITDATA_CACHE_DIR=os.path.join(tempfile.gettempdir(), "none"), OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1",
                LITDATA_DISABLE_VERSION_CHECK="1")


def library(kind):
    for python in (os.environ.get("STOKER_PYTHON"), libraries(LIBRARIES_OF_CHUNKS)):
        if python and subprocess.run([python, "-c", USE[kind]], capture_output=True).returncode == 0:
            return python
    return None


def run(*args, ok=True, env=None):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, env=env or environment())
    assert (done.returncode == 0) == ok, (args, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout if ok else done.stderr


def job(fmt, data, **more):
    keys = {"framework": "pytorch", "dataset.format": fmt, "dataset.data_folder": data, "dataset.num_files_train": 7,
            "dataset.num_samples_per_file": 12, "dataset.record_length_bytes": 400, "reader.data_loader": fmt,
            "reader.batch_size": 4, "reader.sample_shuffle": "off", "reader.persistent_workers": "false", "reader.decode": "verify",
            "train.computation_time": 0.0001, **more}
    return [f"{k}={v}" for k, v in keys.items()]


def ours(fmt, folder):
    """A dataset of ours, and its folder of training files."""
    spec = os.path.join(folder, "job.yaml")
    with open(spec, "w") as f:
        f.write("framework: pytorch\n")
    data = os.path.join(folder, "data-" + fmt)
    run(STOKER, "generate", spec, *job(fmt, data))
    return spec, data, os.path.join(data, "train")


def fill(file_index, offset, n):
    """tests/tools/test_content.h"""
    return bytes((o * 131 + (o >> 8) * 7 + (o >> 16) * 13 + file_index * 17 + 5) & 255
                 for o in range(offset, offset + n))


def read(fmt, path, samples, n, index, how="framework"):
    return [TOOL, "read", fmt, how, "verify", "311", "0", str(index), path, "3", "uint8", str(samples), str(n)]


def they_read_ours(fmt, python, train):
    lines = run(python, "-c", USE[fmt] + READ[fmt] + TELL, train).splitlines()
    assert len(lines) == 7 * 12, lines[:3]
    for i, line in enumerate(lines):
        n, total, label = map(int, line.split())
        path = sorted(pathlib.Path(train).glob("*" + SUFFIX[fmt]), key=lambda p: (len(p.name), p.name))[i // 12]
        raw = path.read_bytes()
        at = [int.from_bytes(raw[4 + 4 * (i % 12 + k):][:4], "little") for k in (0, 1)]
        data = raw[at[0] + (4 if fmt == "mds" else 8):at[1] - 8]
        assert (n, total, label) == (400, sum(data), (i // 12 * 331 + i % 12) % 1000), (i, line)


FORMS = ({"data": "payload", "label": "int"}, {"x": "payload"}, {"a": "int", "image": "payload", "z": "str"},
         {"a": "bytes", "b": "payload", "c": "int"})


def we_read_theirs(fmt, python, folder):
    """Bytes of ours are those that the library writes, and its files of other parts are read."""
    jobs = [(os.path.join(folder, f"theirs{samples}-{k}"), samples, n, columns)
            for samples, n in ((1, 1), (5, 300), (40, 7777)) for k, columns in enumerate(FORMS)]
    whole = os.path.join(folder, "their-" + fmt)
    run(python, "-c", USE[fmt] + FILL + WRITE[fmt], json.dumps([*jobs, (os.path.join(whole, "train"), 12, 400, FORMS[0])]))
    for theirs, samples, n, columns in jobs:
        path = os.path.join(theirs, NAMES[fmt])
        for index in {0, samples - 1}:
            run(*read(fmt, path, samples, n, index))
        if columns == FORMS[0]:
            mine = os.path.join(folder, "mine")
            run(TOOL, "write", fmt, mine, 3, "uint8", samples, n)
            # labels are those of the file's number
            a, b = (bytearray(pathlib.Path(p).read_bytes()) for p in (mine, path))
            for raw in (a, b):
                for i in range(samples):
                    end = int.from_bytes(raw[8 + 4 * i:][:4], "little")
                    raw[end - 8:end] = bytes(8)
            assert a == b, (fmt, samples, n)
            run(*read(fmt, path, samples, n, samples - 1, "native"))
        run(*read(fmt, path, samples, n + 1, 0), ok=False)
    return whole


def their_dataset(fmt, folder, data):
    """A whole dataset of theirs under a run: no manifest, but an index."""
    keys = {"dataset.num_files_train": 1, "reader.decode": "full"}
    spec = os.path.join(folder, "job.yaml")
    run(STOKER, "run", spec, "--output", os.path.join(folder, "out"), *job(fmt, data, **keys))
    index = pathlib.Path(data, "train/index.json")
    text = index.read_text()
    for wrong, words in ((text.replace(NAMES[fmt], "../" + NAMES[fmt]), "no name of a file"),
                         (text.replace('"samples": 12' if fmt == "mds" else '"chunk_size": 12', '"samples": 13'), ""),
                         (text[:60], "offset"), ("[" * 100000, "object")):
        index.write_text(wrong)
        said = run(STOKER, "run", spec, "--output", os.path.join(folder, "out"), *job(fmt, data, **keys), ok=False)
        assert words in said and "index.json" in said, said


LINE = re.compile(r"^(\d+) +(openat|lseek|read|pread64)\((.*)\) += (-?\d+)(?:<([^>]*)>)?")


def asked(log, suffix):
    """What each thread asks of the dataset's files: {thread: [(what, file, offset, bytes)]}."""
    found, place, began = {}, {}, {}
    for line in open(log):
        thread = line.split(None, 1)[0]
        if line.rstrip().endswith("<unfinished ...>"):
            began[thread] = line.split("<unfinished")[0]
            continue
        m = re.match(r"^(\d+) +<\.\.\. \w+ resumed>(.*)", line)
        if m:
            line = began.pop(thread, thread) + m.group(2)
        m = LINE.match(line)
        if not m or suffix not in line:
            continue
        thread, call, args, got, named = m.groups()
        if call == "openat":
            if int(got) >= 0:
                place[thread, got] = 0
                found.setdefault(thread, []).append(("open", os.path.basename(named), 0, 0))
            continue
        fd, name = re.match(r"(\d+)<([^>]*)>", args).groups()
        name = os.path.basename(name)
        if call == "lseek":
            place[thread, fd] = int(got)
        elif call == "read":
            at = place.get((thread, fd), 0)
            found.setdefault(thread, []).append(("read", name, at, int(args.rsplit(",", 1)[1])))
            place[thread, fd] = at + int(got)
        else:
            n, at = (int(x) for x in args.rsplit(",", 2)[1:])
            found.setdefault(thread, []).append(("read", name, at, n))
    # who reads no offsets is no worker: before training a run looks at what files are
    return [v for v in found.values() if any(x[0] == "read" and x[3] == 8 for x in v)]


def traced(folder, suffix, *command, also=""):
    log = os.path.join(folder, "log")
    run("strace", "-f", "--seccomp-bpf", "-y", "-s", "0", "-e", "trace=openat,lseek,read,pread64" + also, "-o", log, "--", *command)
    return asked(log, suffix)


def moved(log, suffix):
    """What a copy asks the system for, by shard, in any order; the shards as they were named; those that were removed."""
    copies, named, removed, began = [], [], [], {}
    for line in open(log):
        thread, text = line.rstrip("\n").split(None, 1)
        if text.endswith("<unfinished ...>"):
            began[thread] = text[:-len("<unfinished ...>")]
            continue
        m = re.match(r"<\.\.\. \w+ resumed>(.*)", text)
        if m:
            text = began.pop(thread, "") + m.group(1)
        m = re.match(r"sendfile\(\d+<([^>]*)>, \d+<([^>]*)>, \[(\d+)\](?: *=> \[\d+\])? *, (\d+)\) *= (\d+)", text)
        if m and m.group(2).endswith(suffix):
            copies.append((*map(os.path.basename, m.groups()[:2]), *map(int, m.groups()[2:])))
        m = re.match(r'rename\("([^"]*)", "([^"]*)" *\) *= 0', text)
        if m and m.group(2).endswith(suffix):
            named.append(tuple(map(os.path.basename, m.groups())))
        m = re.match(r'unlink\("([^"]*)" *\) *= 0', text)
        if m and m.group(1).endswith(suffix):
            removed.append(os.path.basename(m.group(1)))
    return copies, named, removed


def same_downloads(fmt, python, folder, spec, data, train):
    """From a remote folder. With several workers and room for all, the order between workers is chance; with one and room for less,
    what is downloaded and what is removed come in one order each, in one epoch: in later ones Streaming differs from itself."""
    if not shutil.which("strace"):
        left_out(f"downloads of {fmt}: strace is not installed")
        return
    suffix, also = SUFFIX[fmt], ",sendfile,rename,unlink"
    one = max(p.stat().st_size for p in pathlib.Path(train).glob("*" + suffix))
    for number, (case, ordered) in enumerate((((1, 2, 0, 0), False), ((0, 1, 4 * one + 3000, 4 if fmt == "mds" else 2), True))):
        shuffle, workers, limit, ahead = case
        keys = {"reader.read_threads": workers, "train.epochs": 1 if ordered else 2, "train.seed": 77,
                "reader.sample_shuffle": "seed" if shuffle else "off", "reader.cache_limit": limit}
        if ahead:
            keys["reader.predownload" if fmt == "mds" else "reader.max_pre_download"] = ahead
        log = os.path.join(folder, "log")
        for attempt in range(4):
            found = []
            keys["reader.cache_folder"] = os.path.join(folder, f"ours{number}-{fmt}{attempt}")
            for command in ((STOKER, "run", spec, "--output", os.path.join(folder, "out"), *job(fmt, data, **keys)),
                            (python, "-c", USE[fmt] + REMOTE + REMOTE_LOADER[fmt] + EPOCHS, train, 77, 4, keys["train.epochs"],
                             json.dumps([case]), os.path.join(folder, f"theirs{number}-{fmt}{attempt}"))):
                reads = sorted([x for x in thread if x[1].endswith(suffix)] for thread in traced(folder, suffix, *command, also=also))
                copies, named, removed = moved(log, suffix)
                found.append({"reads": reads, "copies": sorted(copies), "named": named if ordered else sorted(named), "removed": removed})
            differ = [what for what in found[0] if found[0][what] != found[1][what]]
            # Streaming's two threads may both download a shard that both miss
            if not differ:
                break
            print(f"{fmt}: attempt {attempt}: {differ} differ")
        else:
            for what in differ:
                print(*(f"{who}: {len(x[what])} {str(x[what])[:2000]}" for who, x in zip(("ours", "real"), found)), sep="\n")
            raise SystemExit(f"{fmt}, case {case}: {differ} differ")
        assert found[0]["copies"] and bool(found[0]["removed"]) == ordered, found[0]
        print(f"{fmt}: {len(named)} downloads and {len(removed)} removals are the library's, and {sum(map(len, reads))} requests")


def same_objects(fmt, python, folder, spec):
    """From a server of objects: for each shard a HEAD and a GET of all of it. Streaming downloads in two threads, so that its
    neighbours may swap places."""
    if subprocess.run([python, "-c", "import boto3"], capture_output=True).returncode:
        left_out(f"{fmt} over S3: boto3 is not installed")
        return
    with S3Server() as s3:
        env = {k: v for k, v in environment().items() if not k.startswith(("AWS_", "S3_")) and not k.lower().endswith("_proxy")}
        env.update(s3.env(), S3_ENDPOINT_URL=s3.env()["AWS_ENDPOINT_URL"])
        keys = {"storage.storage_type": "s3", "storage.storage_root": "bucket", "reader.read_threads": 1, "dataset.verify_samples": 0,
                "reader.cache_folder": os.path.join(folder, "ours-s3")}
        run(STOKER, "generate", spec, *job(fmt, "data/" + fmt, **keys), env=env)
        remote = (f"remote='s3://bucket/data/{fmt}/train'", f"'s3://bucket/data/{fmt}/train'")
        secret = "storage_options=dict(endpoint_url=os.environ['AWS_ENDPOINT_URL'], aws_access_key_id=os.environ['AWS_ACCESS_KEY_ID'], " \
                 "aws_secret_access_key=os.environ['AWS_SECRET_ACCESS_KEY']), max_pre_download"
        loader = REMOTE_LOADER[fmt].replace("remote=folder", remote[0]).replace('"local:" + folder', remote[1])
        found = []
        for command in ((STOKER, "run", spec, "--output", os.path.join(folder, "out"), *job(fmt, "data/" + fmt, **keys)),
                        (python, "-c", USE[fmt] + REMOTE + loader.replace("max_pre_download", secret) + EPOCHS, "", 77, 4, 2,
                         json.dumps([(0, 1, 0, 0)]), os.path.join(folder, "theirs-s3"))):
            s3.clear()
            run(*command, env=env)
            asked = [r for r in s3.requests() if r["key"].endswith(SUFFIX[fmt])]
            # ours looks at the sizes of shards before and behind the training, too
            ops = {}
            for r in asked:
                ops.setdefault(r["key"], []).append(r["op"])
            found.append({k: (v[v.index("GetObject") - 1], v.count("GetObject"))
                          for k, v in sorted(ops.items(), key=lambda x: [r["key"] for r in asked if r["op"] == "GetObject"].index(x[0]))})
        assert found[0] and found[0] == found[1], found
        places = [{key: i for i, key in enumerate(x)} for x in found]
        assert all(abs(places[0][key] - places[1][key]) <= 1 for key in places[0]), found
        print(f"{fmt}: {len(found[0])} objects are asked for as by the library")


def same_requests(fmt, python, folder, spec, data, train):
    if not shutil.which("strace"):
        left_out(f"requests of {fmt}: strace is not installed")
        return
    algorithms = ("py1e", "py1s", "naive", "py1br", "py2s") if fmt == "mds" else ("",)
    cases = [(0, 3, algorithms[0])] + [(1, 2, a) for a in algorithms]
    mine = []
    for shuffle, workers, algorithm in cases:
        keys = {"reader.read_threads": workers, "train.epochs": 2, "train.seed": 77,
                "reader.sample_shuffle": "seed" if shuffle else "off"}
        if algorithm:
            keys["reader.shuffle_algorithm"] = algorithm
        mine += traced(folder, SUFFIX[fmt], STOKER, "run", spec, "--output", os.path.join(folder, "out"), *job(fmt, data, **keys))
    real = traced(folder, SUFFIX[fmt], python, "-c", USE[fmt] + LOAD + LOADER[fmt] + EPOCHS, train, 77, 4, 2, json.dumps(cases))
    mine, real = sorted(mine), sorted(real)
    if mine != real:
        for who, one, other in (("ours", mine, real), ("real", real, mine)):
            print(*(f"{who}: {len(a)} requests, {a[:6]}" for a in one if a not in other), sep="\n")
        raise SystemExit(f"{fmt}: the requests differ")
    print(f"{fmt}: {sum(map(len, mine))} requests of {len(mine)} workers are the library's, in its order")


def proved(folder, spec, data, fmt):
    out = os.path.join(folder, "out")
    for ranks, more in ((1, {}), (3, {"reader.batch_size": 5}), (4, {"reader.nodes": 2} if fmt == "mds" else {})):
        run(STOKER, "run", spec, "--ranks", ranks, "--output", out,
            *job(fmt, data, **{"reader.sample_shuffle": "seed", "reader.read_threads": 2, "train.epochs": 2, **more}))
        with open(os.path.join(out, "result.json")) as f:
            for epoch in json.load(f)["training"]["epochs"]:
                assert epoch["order_proved"], epoch


def main():
    for fmt in sys.argv[1:] or ("mds", "litdata"):
        with tempfile.TemporaryDirectory() as folder:
            spec, data, train = ours(fmt, folder)
            proved(folder, spec, data, fmt)
            python = library(fmt)
            if not python:
                left_out(f"the library of {fmt}: no Python here has it (tools/setup.sh heavy; STOKER_PYTHON names another one)")
                continue
            they_read_ours(fmt, python, train)
            their_dataset(fmt, folder, we_read_theirs(fmt, python, folder))
            same_requests(fmt, python, folder, spec, data, train)
            same_downloads(fmt, python, folder, spec, data, train)
            same_objects(fmt, python, folder, spec)


main()
