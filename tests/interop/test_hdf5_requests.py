"""h5py under strace, beside our framework reader under strace: the same opens and the same reads, offset,
size asked and size returned, in the same order; and how few our native reader makes."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from strace_requests import explain, requests, skip

TOOL = os.path.join(os.environ["STOKER_TOOLS"], "format_tool")
PYTHON = "/usr/bin/python3"

MAKE = """
import sys, h5py, numpy as np
path, libver, elem, shape, datasets, keywords, extra = eval(sys.argv[1])
rng = np.random.default_rng(1)
space = extra.pop("space", {})
with h5py.File(path, "w", libver=libver, **space) as f:
    for i in range(extra.get("names", 0)): f.create_dataset("another long name %d" % i, data=np.zeros(4))
    for k in range(datasets):
        n = int(np.prod(shape)) * np.dtype(elem).itemsize
        x = np.frombuffer(rng.bytes(n), elem).reshape(shape)
        d = f.create_dataset("records_%d" % k, data=x, **keywords)
        for i in range(extra.get("attributes", 0)): d.attrs["attribute %d" % i] = "x" * 60
        del d
    f.create_dataset("labels", data=np.zeros(shape[0], np.int64))
"""
LOAD = """
import sys, h5py
path, datasets, index = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
f = h5py.File(path, "r")
for k in range(datasets): f["records_%d" % k][index]
f.close()
"""

L, E, OURS = "latest", None, "ours"
# libver, element type, shape, datasets, keywords, extras, samples read
CASES = [(L, "uint8", (1, 32, 32), 1, {}, {}, (0,)), (E, "uint8", (1, 32, 32), 1, {}, {}, (0,)),
         (("earliest", "v108"), "uint8", (1, 32, 32), 1, {}, {}, (0,)),
         # around the 64 KiB of the library's buffer, and a first and last sample
         (L, "uint8", (4, 100, 100), 1, {}, {}, (0, 1, 3)), (E, "uint8", (4, 100, 100), 1, {}, {}, (0, 1, 3)),
         (L, "uint8", (6, 256, 256), 1, {}, {}, (0, 5)), (L, "uint8", (6, 256, 257), 1, {}, {}, (0, 5)),
         (L, "uint8", (60, 100, 257), 1, {}, {}, (0, 58, 59)), (L, "float64", (3, 700, 700), 1, {}, {}, (1,)),
         (L, "int16", (4, 4, 4), 1, {}, {}, (0, 3)),
         (L, "uint8", (4, 100, 100), 2, {}, {}, (1,)), (E, "uint8", (4, 100, 100), 3, {}, {}, (3,)),
         (L, "uint8", (4, 100, 100), 7, {}, {}, (0,)), (E, "uint8", (4, 100, 100), 7, {}, {}, (0,)),
         # links in a heap, found by a tree: one node and one block, several blocks, several nodes
         (L, "uint8", (4, 9, 9), 8, {}, {}, (2,)), (L, "uint8", (4, 9, 9), 20, {}, {}, (2,)),
         (L, "uint8", (4, 9, 9), 63, {}, {}, (2,)),
         (L, "uint8", (4, 9, 9), 9, {"chunks": (1, 9, 9), "compression": "gzip"}, {}, (2,)),
         (L, "uint8", (4, 100, 100), 3, {}, {"names": 30}, (1,)),
         # symbol tables of several nodes
         (E, "uint8", (4, 9, 9), 20, {}, {}, (2,)), (OURS, "uint8", (4, 9, 9), 20, {}, {}, (2,)),
         (OURS, "uint8", (4, 9, 9), 63, {}, {}, (2,)),
         (L, "uint8", (4, 100, 100), 1, {"chunks": (1, 50, 50)}, {}, (0, 3)),
         (E, "uint8", (4, 100, 100), 1, {"chunks": (1, 50, 50)}, {}, (0, 3)),
         (L, "uint8", (4, 16, 16), 1, {"chunks": (4, 16, 16)}, {}, (2,)),
         (L, "uint8", (4, 16, 16), 1, {"chunks": (1, 8, 8), "maxshape": (4, 32, 32)}, {}, (2,)),
         # pages of a fixed array; a tree of three levels
         (L, "uint8", (300, 100, 100), 1, {"chunks": (1, 25, 25)}, {}, (0, 64, 200)),
         (E, "uint8", (300, 100, 100), 1, {"chunks": (1, 25, 25)}, {}, (0, 64, 200)),
         # around the cache for chunks
         (L, "uint8", (4, 1024, 1024), 1, {"chunks": (1, 1024, 1024)}, {}, (1,)),
         (L, "uint8", (6, 1024, 1024), 1, {"chunks": (4, 1024, 1024)}, {}, (1, 5)),
         (L, "uint8", (3, 150, 15000), 1, {"chunks": (2, 100, 8000)}, {}, (1,)),
         (L, "uint8", (6, 1024, 1024), 1, {"chunks": (4, 1024, 1024), "compression": "gzip"}, {}, (1, 5)),
         (L, "uint8", (4, 100, 100), 1, {"compression": "gzip"}, {}, (1,)),
         (E, "uint8", (4, 100, 100), 1, {"compression": "gzip"}, {}, (1,)),
         (L, "uint8", (4, 100, 100), 1, {"compression": "lzf"}, {}, (1,)),
         (L, "uint16", (4, 100, 100), 1, {"compression": "gzip", "shuffle": True, "fletcher32": True}, {},
          (1,)),
         # headers of more than 512 bytes and of several parts, a heap elsewhere, an extension
         (E, "uint8", (4, 100, 100), 1, {}, {"attributes": 12}, (1,)),
         (L, "uint8", (4, 100, 100), 1, {}, {"attributes": 6}, (1,)),
         (E, "uint8", (4, 100, 100), 2, {}, {"names": 30}, (1,)),
         (E, "uint8", (4, 100, 100), 1, {}, {"space": {"fs_strategy": "page", "fs_page_size": 4096}}, (1,))]


def ours(access, path, elem, shape, datasets, keywords, index):
    keys = ["datasets=%d" % datasets]
    for ours, theirs in ("chunk", "chunks"), ("max", "maxshape"):
        if theirs in keywords:
            dims = keywords[theirs] if ours == "chunk" else keywords[theirs][1:]
            keys.append(ours + "=" + "x".join(str(d) for d in dims))
    if "compression" in keywords:
        keys.append("compression=" + keywords["compression"])
    dims = [shape[1] * datasets] + list(shape[2:])
    return [TOOL, "read", "hdf5", access, "full", "311", "0", str(index), path, "0", elem,
            str(shape[0])] + [str(d) for d in dims] + keys


def main():
    if subprocess.run([PYTHON, "-c", "import h5py"], stderr=subprocess.DEVNULL).returncode != 0:
        skip("h5py is not installed for " + PYTHON)
    version = subprocess.run([PYTHON, "-c", "import h5py; print(h5py.version.hdf5_version)"],
                             stdout=subprocess.PIPE, text=True).stdout.strip()
    if not version.startswith("1.10."):
        skip("the requests are those of HDF5 1.10; this is " + version)
    bad = compared = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f.hdf5")
        for libver, elem, shape, datasets, keywords, extra, indexes in CASES:
            job = (path, libver, elem, shape, datasets, keywords, extra)
            if libver is OURS:
                subprocess.run([TOOL, "write", "hdf5", path, "0", elem, str(shape[0]), str(shape[1] * datasets),
                                *map(str, shape[2:]), "datasets=%d" % datasets], check=True)
            else:
                subprocess.run([PYTHON, "-c", MAKE, repr(job)], check=True)
            for index in indexes:
                real, _ = requests([PYTHON, "-c", LOAD, path, str(datasets), str(index)], path)
                mine, _ = requests(ours("framework", path, elem, shape, datasets, keywords, index), path)
                few, _ = requests(ours("native", path, elem, shape, datasets, keywords, index), path)
                compared += len(real)
                if real != mine:
                    explain("%s, sample %d" % (job[1:], index), real, mine)
                    bad += 1
                # the open, the window, the data in pieces of 2 MiB; a tree's nodes and chunks that do not
                # lie together
                pieces = os.path.getsize(path) >> 21
                if len(few) > 3 + 2 * datasets + pieces + (4 if libver is E and "chunks" in keywords else 0) + (
                        9 if datasets > 7 else 0):
                    print("native needs %d requests for %s, sample %d" % (len(few), job[1:], index))
                    bad += 1
    print("%d requests compared, %d files with a difference" % (compared, bad))
    return 1 if bad or not compared else 0


sys.exit(main())
