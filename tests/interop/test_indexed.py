"""Indexed binary files of ours read with NumPy as DLIO reads them, and the requests of both compared:
the same opens, reads and maps of each of the three files, in the same order."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from strace_requests import explain, python_with_numpy, requests, traced

TOOL = os.path.join(os.environ["STOKER_TOOLS"], "format_tool")
PYTHON, GENERATION, VERSION = python_with_numpy()

# One sample as each of DLIO's two readers takes it; the mapped one touches the sample, too.
READ = """
import sys, numpy as np
path, n, i = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
index = []
for end in (".off.idx", ".sz.idx"):
    a = np.empty(n, dtype=np.int64)
    with open(path + end, "rb") as f:
        f.readinto(a)
    index.append(a)
with open(path, "rb") as f:
    f.seek(index[0][i])
    x = np.empty(index[1][i], dtype=np.uint8)
    f.readinto(x)
"""
MAP = """
import sys, numpy as np
path, n, i = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
off = np.frombuffer(memoryview(np.memmap(path + ".off.idx", mode="r", order="C")), dtype=np.int64)
size = np.frombuffer(memoryview(np.memmap(path + ".sz.idx", mode="r", order="C")), dtype=np.int64)
data = np.memmap(path, mode="r", order="C")
data[off[i]:off[i] + size[i]].sum()
"""
CHECK = """
import sys, numpy as np
path, file_index, n, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
off = np.fromfile(path + ".off.idx", np.uint64)
sizes = np.fromfile(path + ".sz.idx", np.uint64)
assert off.size == sizes.size == n, (off.size, sizes.size, n)
assert (sizes == size).all() and (off == np.arange(n, dtype=np.uint64) * np.uint64(size)).all()
o = np.arange(n * size, dtype=np.uint64)
want = o * 131 + (o >> np.uint64(8)) * 7 + (o >> np.uint64(16)) * 13 + file_index * 17 + 5
assert (np.fromfile(path, np.uint8) == want.astype(np.uint8)).all()
"""

# element type, samples, dimensions, samples to read, preferred request sizes (None: the real one)
CASES = [("uint8", 1, (32, 32), (0,), (None, 65536)),
         ("uint8", 5, (45, 45), (0, 1, 4), (None, 512, 65536)),
         ("uint8", 3, (64, 64), (0, 2), (None,)),
         ("uint8", 3, (64, 65), (1, 2), (None,)),
         ("float32", 7, (100, 100), (0, 6), (None, 65536)),
         ("int64", 4, (3, 5, 7), (3,), (None,)),
         ("uint8", 2, (2048, 2048), (1,), (None, 1048576)),
         ("uint8", 600, (2, 2), (0, 599), (None,)),
         ("uint8", 200000, (1, 3), (0, 199999), (None, 1048576)),
         ("uint8", 1048576, (1,), (77,), (None,))]


def tool(*args):
    run = subprocess.run([TOOL] + [str(a) for a in args], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    if run.returncode != 0:
        raise SystemExit("%s: %s" % (args, run.stderr))


def maps(command, path):
    """The opens and maps of a file, from strace: whether it is opened for reading only, and the size,
    protection, kind and offset of maps."""
    text, _ = traced(command, path, ["-e", "trace=openat,mmap,read,pread64"])
    found = []
    for line in text.splitlines():
        m = re.search(r"\bmmap\(NULL, (\d+), (\w+), ([\w|]+), \d+, (\w+)\)", line)
        if m:
            found.append(("mmap",) + m.groups())
        elif "openat(" in line:
            found.append(("open", "O_RDONLY" in line))
        elif "read(" in line or "pread64(" in line:
            found.append(("read", line))
    return found


def main():
    bad = compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (elem, samples, dims, indices, blocks) in enumerate(CASES):
            for fmt in ("indexed_binary", "mmap_indexed_binary"):
                path = os.path.join(folder, "f%d.%s" % (number, fmt))
                spec = [path, number, elem, samples] + list(dims)
                tool("write", fmt, *spec)
                tool("verify", fmt, *spec)
                size = os.path.getsize(path) // samples
                subprocess.run([PYTHON, "-c", CHECK, path, str(number), str(samples), str(size)],
                               check=True)
                for index in indices:
                    for access in ("framework", "native"):
                        tool("read", fmt, access, "verify", GENERATION, 0, index, *spec)
                    ours = [str(a) for a in [TOOL, "read", fmt, "framework", "full", GENERATION, 0,
                                             index] + spec]
                    real = [PYTHON, "-c", READ if fmt == "indexed_binary" else MAP, path,
                            str(samples), str(index)]
                    for block in blocks:
                        for end in (".off.idx", ".sz.idx", ""):
                            name = "%s %s x %s%s, sample %d of %d, request size %s" % (
                                fmt, elem, dims, end, index, samples, block)
                            if fmt == "indexed_binary":
                                a = requests(real, path + end, block)[0]
                                b = requests(ours, path + end, block)[0]
                            elif block is None:
                                a, b = maps(real, path + end), maps(ours, path + end)
                            else:
                                continue
                            compared += len(a)
                            if a != b or len(a) < 2:
                                explain(name, a, b)
                                bad += 1
    print("NumPy %s: %d requests compared, %d files with a difference" % (VERSION, compared, bad))
    return 1 if bad or not compared else 0


sys.exit(main())
