"""The real h5py reads what we write and finds the values, and in ordinary cases every byte, its own; we
read what h5py writes, old and new formats, every index and filter."""
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from strace_requests import skip

TOOL = os.path.join(os.environ["STOKER_TOOLS"], "format_tool")
PYTHON = "/usr/bin/python3"

# One process does all of h5py's part: a job a line, an answer a line.
H5PY = """
import json, sys
import h5py, numpy as np
def content(n, file_index):
    o = np.arange(n, dtype=np.uint64)
    v = o * 131 + (o >> np.uint64(8)) * 7 + (o >> np.uint64(16)) * 13 + file_index * 17 + 5
    return v.astype(np.uint8)
def array(job, k):
    t = np.dtype(job["elem"]); n = int(np.prod(job["shape"])) * t.itemsize
    return content(n * (k + 1), job["file_index"])[n * k:].view(t).reshape(job["shape"])
def keywords(job):
    return {k: tuple(v) if isinstance(v, list) else v for k, v in job["keywords"].items()}
def save(job, path):
    libver = tuple(job["libver"]) if isinstance(job["libver"], list) else job["libver"]
    with h5py.File(path, "w", libver=libver) as f:
        for k in range(job["datasets"]):
            if job.get("early"):
                p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                p.set_chunk(tuple(job["keywords"]["chunks"]))
                p.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
                t = h5py.h5t.py_create(np.dtype(job["elem"]))
                d = h5py.Dataset(h5py.h5d.create(f.id, b"records_%d" % k, t,
                                                 h5py.h5s.create_simple(tuple(job["shape"])), p))
                d[...] = array(job, k)
            else:
                d = f.create_dataset("records_%d" % k, data=array(job, k), **keywords(job))
            for i in range(job.get("attributes", 0)):
                d.attrs["attribute %d" % i] = "x" * 60
            del d
        f.create_dataset("labels", data=np.zeros(job["shape"][0], np.int64))
def mask(path):
    b = bytearray(open(path, "rb").read())
    b[54:70] = bytes(16); b[191:195] = bytes(4)  # times of the root group, and its checksum
    return bytes(b)
def check(job):
    with h5py.File(job["path"], "r") as f:
        assert sorted(f) == sorted(["labels"] + ["records_%d" % k for k in range(job["datasets"])])
        for k in range(job["datasets"]):
            d, x = f["records_%d" % k], array(job, k)
            assert d.shape == x.shape and d.dtype == x.dtype, (d.shape, d.dtype)
            assert d.compression == job["keywords"].get("compression")
            assert d.maxshape == tuple(job["keywords"].get("maxshape", x.shape)), d.maxshape
            if "chunks" in job["keywords"]: assert d.chunks == tuple(job["keywords"]["chunks"])
            if job["elem"] != "bool": assert d[...].tobytes() == x.tobytes(), "values differ"
        labels = f["labels"]
        assert labels.dtype == np.int64 and labels.shape == (job["shape"][0],) and not labels[...].any()
    save(job, job["path"] + ".real")
    return "same" if mask(job["path"]) == mask(job["path"] + ".real") else "other"
def neighbours(job):
    with h5py.File(job["path"], "w", libver="latest", track_order=job["tracked"]) as f:
        other = f.create_dataset("other", data=1)
        for i in range(job["many"]): f["%09d" % i] = other
        for i in range(3): f["x" * 5000 + str(i)] = h5py.SoftLink("/elsewhere")
        for k in range(job["datasets"]): f.create_dataset("records_%d" % k, data=array(job, k))
        for i in range(0, 40, 3): del f["%09d" % i]
def sparse(job):
    with h5py.File(job["path"], "w", libver="latest") as f:
        p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        p.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY); p.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        h5py.h5d.create(f.id, b"records_0", h5py.h5t.NATIVE_UINT8,
                        h5py.h5s.create_simple(tuple(job["shape"])), p)
def odd(job):
    with h5py.File(job["path"], "w", libver=job["libver"]) as f:
        x = np.zeros(job["shape"], job["elem"])
        if job["how"] == "compact":
            p = h5py.h5p.create(h5py.h5p.DATASET_CREATE); p.set_layout(h5py.h5d.COMPACT)
            h5py.h5d.create(f.id, b"records_0", h5py.h5t.NATIVE_UINT8,
                            h5py.h5s.create_simple(x.shape), p)
        elif job["how"] == "external":
            f.create_dataset("records_0", x.shape, x.dtype, external=[("/tmp/none", 0, x.nbytes)])
        elif job["how"] == "crowd":
            for i in range(12): f.create_dataset("records_%d" % (i + 1), data=x)
        elif job["how"] == "soft" or job["how"] == "soft crowd":
            f["records_0"] = h5py.SoftLink("/elsewhere")
            for i in range(12 if "crowd" in job["how"] else 0): f["name %d" % i] = h5py.SoftLink("/elsewhere")
        elif job["how"] == "many":
            for i in range(10000): f["%09d" % i] = f
            f.create_dataset("records_0", data=x)
        elif job["how"] == "group": f.create_group("records_0")
        elif job["how"] == "empty": pass
        else: f.create_dataset("records_0", data=x, **keywords(job))
for line in sys.stdin:
    job = json.loads(line)
    what = job["what"]
    print(check(job) if what == "check" else {"save": lambda j: save(j, j["path"]), "sparse": sparse, "odd": odd,
                                              "neighbours": neighbours}[what](job), flush=True)
"""


class Peer:
    def __init__(self):
        probe = subprocess.run([PYTHON, "-c", "import h5py; print(h5py.version.version)"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if probe.returncode != 0:
            skip("h5py is not installed for " + PYTHON)
        self.version = probe.stdout.strip()
        self.process = subprocess.Popen([PYTHON, "-c", H5PY], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, **job):
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise SystemExit("h5py failed with %s" % job)
        return answer


def tool(*args):
    return subprocess.run([TOOL] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)


def must(*args):
    run = tool(*args)
    if run.returncode != 0:
        raise SystemExit("%s: %s" % (" ".join(args), run.stderr))


def by(dims):
    return "x".join(str(d) for d in dims)


def read_all_ways(path, samples, spec, index):
    for access, decode in itertools.product(("framework", "native"), ("full", "verify", "none")):
        must("read", "hdf5", access, decode, "311", "0", str(index), path, *spec)


def read_verified(path, spec, index):
    for access in "framework", "native":
        must("read", "hdf5", access, "verify", "311", "0", str(index), path, *spec)


def draw(rng):
    """A dataset as h5py's keywords and as our tool's."""
    samples = rng.choice([1, 2, 3, 5, 17, 40])
    dims = [rng.choice([2, 3, 7, 16, 33, 100]) for _ in range(rng.choice([1, 2, 2, 3]))]
    datasets = rng.choice([1, 1, 1, 2, 3, 4, 7])
    if datasets > 1:
        dims[0] = datasets * rng.choice([1, 2, 3, 8])
    shape = [samples] + [dims[0] // datasets] + dims[1:]
    if shape[1] == 1:
        del shape[1]
    keywords, keys = {}, ["datasets=%d" % datasets]
    most = list(shape)
    if rng.random() < .3 and len(shape) > 1:
        most = shape[:1] + [d + rng.choice([0, 0, 1, 5, d]) for d in shape[1:]]
        keys.append("max=" + by(most[1:]))
        keywords["maxshape"] = most
    if rng.random() < .5:
        keywords["chunks"] = [rng.randint(1, min(d, rng.choice([1, 3, 20, d]))) for d in most]
        keys.append("chunk=" + by(keywords["chunks"]))
    packing = rng.choice([None, None, "gzip", "lzf"])
    if packing:
        keywords["compression"] = packing
        keys.append("compression=" + packing)
    elem = rng.choice(["uint8", "int16", "float16", "float32", "float64", "complex64", "bool"])
    spec = ["3", elem, str(samples)] + [str(d) for d in dims] + keys
    return dict(elem=elem, shape=shape, datasets=datasets, file_index=3, keywords=keywords), spec


# Files that must be h5py's byte for byte: shape of a dataset, how many, its keywords.
SAME = [("uint8", (1, 32, 32), 1, {}), ("uint8", (4, 100, 100), 7, {}), ("float32", (4, 100, 9), 3, {}),
        ("complex128", (2, 3, 4), 1, {}), ("bool", (2, 9, 9), 2, {}), ("float16", (300, 5, 5), 1, {}),
        ("int16", (6, 90, 90), 1, {"chunks": (1, 45, 30)}), ("uint8", (4, 16, 16), 2, {"chunks": (4, 16, 16)}),
        ("uint8", (4, 16, 16), 1, {"chunks": (1, 8, 8), "maxshape": (4, 32, 20)}),
        ("uint8", (3, 20, 20), 1, {"chunks": (2, 8, 8)}),
        ("uint8", (2, 1500, 1500), 1, {"chunks": (1, 1500, 1500)})]


def ours(peer, folder, rng):
    path = os.path.join(folder, "ours")
    same = 0
    for elem, shape, datasets, keywords in SAME:
        keys = ["datasets=%d" % datasets]
        if "chunks" in keywords:
            keys.append("chunk=" + by(keywords["chunks"]))
        if "maxshape" in keywords:
            keys.append("max=" + by(keywords["maxshape"][1:]))
        spec = ["3", elem, str(shape[0]), str(shape[1] * datasets)] + [str(d) for d in shape[2:]] + keys
        must("write", "hdf5", path, *spec)
        answer = peer.ask(what="check", path=path, elem=elem, shape=shape, datasets=datasets,
                          file_index=3, keywords=keywords, libver="latest")
        if answer != "same":
            raise SystemExit("%s is not h5py's byte for byte" % spec)
        same += 1
    # more links than the root group's header holds: a tree over one to eight nodes
    for datasets in 8, 10, 15, 16, 39, 63:
        spec = ["3", "uint8", "3", str(datasets * 2), "5", "datasets=%d" % datasets]
        must("write", "hdf5", path, *spec)
        must("verify", "hdf5", path, *spec)
        peer.ask(what="check", path=path, elem="uint8", shape=(3, 2, 5), datasets=datasets, file_index=3,
                 keywords={}, libver="latest")
        read_all_ways(path, 3, spec, 2)
    turns = 80
    for _ in range(turns):
        job, spec = draw(rng)
        must("write", "hdf5", path, *spec)
        must("verify", "hdf5", path, *spec)
        same += peer.ask(what="check", path=path, libver="latest", **job) == "same"
        read_all_ways(path, job["shape"][0], spec, rng.randrange(job["shape"][0]))
    print("h5py %s read %d files of ours; %d are its own byte for byte"
          % (peer.version, len(SAME) + turns, same))


PACKED = [({}, []), ({"chunks": (2, 1, 3)}, ["chunk=2x1x3"]),
          ({"chunks": (2, 1, 3), "compression": "gzip", "shuffle": True}, ["chunk=2x1x3", "compression=gzip"]),
          ({"compression": "lzf"}, ["compression=lzf"])]


def theirs(peer, folder, rng):
    path = os.path.join(folder, "theirs")
    turns = 80
    for turn in range(turns):
        job, spec = draw(rng)
        if job["elem"] == "bool":
            job["elem"] = spec[1] = "uint16"
        if "compression" in job["keywords"] or "chunks" in job["keywords"]:
            job["keywords"]["shuffle"] = rng.random() < .4
            job["keywords"]["fletcher32"] = rng.random() < .4
        libver = rng.choice([None, "latest", ["earliest", "v108"]])
        early = libver == "latest" and set(job["keywords"]) == {"chunks", "shuffle", "fletcher32"}
        if early:
            job["keywords"] = {"chunks": job["keywords"]["chunks"]}
        peer.ask(what="save", path=path, libver=libver, early=early, attributes=turn % 3 * 4, **job)
        for index in {0, job["shape"][0] - 1, rng.randrange(job["shape"][0])}:
            read_all_ways(path, job["shape"][0], spec, index)
    crowds = 0
    # links in the group's header, in a symbol table, and dense: the tree's root a leaf (up to 45 links) or not, the
    # heap's root a direct block (up to 20 or so) or not
    for libver, datasets in itertools.product(("latest", "earliest"), (1, 7, 8, 9, 20, 44, 45, 63)):
        ways = PACKED if datasets in (8, 20, 63) else PACKED[:1]
        for keywords, keys in ways:
            peer.ask(what="save", path=path, libver=libver, elem="uint8", shape=(3, 2, 5), datasets=datasets,
                     file_index=3, keywords=keywords)
            spec = ["3", "uint8", "3", str(datasets * 2), "5", "datasets=%d" % datasets] + keys
            read_verified(path, spec, 1)
            crowds += 1
    # other links among ours, some of them long or gone: of the tree one to four levels, of the heap one to two
    for many, tracked in (40, False), (300, True), (3000, False), (28000, False):
        peer.ask(what="neighbours", path=path, many=many, tracked=tracked, elem="uint8", shape=(3, 2, 5), datasets=9,
                 file_index=3, keywords={})
        read_verified(path, ["3", "uint8", "3", "18", "5", "datasets=9"], 1)
        crowds += 1
    print("%d files of h5py read" % (turns + crowds))


def large(peer, folder):
    """Beyond 4 GiB, and many samples."""
    path = os.path.join(folder, "large")
    peer.ask(what="sparse", path=path, shape=[6000, 1024, 1024])
    spec = ["0", "uint8", "6000", "1024", "1024"]
    for access in "framework", "native":
        must("read", "hdf5", access, "full", "311", "0", "5999", path, *spec)
    for keys in [], ["chunk=1x3"], ["chunk=1000x3", "compression=gzip"]:
        spec = ["3", "uint8", "200000", "3"] + keys
        must("write", "hdf5", path, *spec)
        read_all_ways(path, 200000, spec, 199999)


ODD = [("compact", "stored in its header", {}), ("external", "other files", {}),
       ("crowd", "no dataset records_0", {}), ("soft", "no dataset records_0", {}),
       ("soft crowd", "no dataset records_0", {}), ("many", "has 32768 bytes; at most 24576", {}),
       ("group", "not that of a dataset", {}), ("empty", "no dataset records_0", {}),
       ("grows", "extensible array", {"maxshape": (None, 4, 5), "chunks": (1, 4, 5)}),
       ("grows", "B-tree (version 2)", {"maxshape": (None, None, 5), "chunks": (1, 4, 5)}),
       ("filter", "filter 6", {"scaleoffset": 2, "chunks": (1, 4, 5)}),
       ("shape", "uint8 (3, 4, 5)", {"shape": (3, 4, 5)}), ("type", "big-endian int16", {"elem": ">i2"}),
       ("type", "float32 (2, 4, 5)", {"elem": "f4"})]


def refused(peer, folder):
    path = os.path.join(folder, "odd")
    for how, words, keywords in ODD:
        keywords = dict(keywords)
        shape, elem = keywords.pop("shape", (2, 4, 5)), keywords.pop("elem", "u1")
        peer.ask(what="odd", path=path, how=how, libver="latest", shape=shape, elem=elem,
                 keywords=keywords)
        for access in "framework", "native":
            run = tool("read", "hdf5", access, "full", "311", "0", "0", path, "0", "uint8", "2", "4", "5")
            if run.returncode != 1 or words not in run.stderr or path not in run.stderr:
                raise SystemExit("%s: '%s' is not in: %s" % (how, words, run.stderr))


def main():
    rng = random.Random(20)
    peer = Peer()
    with tempfile.TemporaryDirectory() as folder:
        ours(peer, folder, rng)
        theirs(peer, folder, rng)
        large(peer, folder)
        refused(peer, folder)
    return 0


sys.exit(main())
