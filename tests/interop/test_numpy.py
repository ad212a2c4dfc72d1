"""The real NumPy reads what we write and finds it byte for byte its own; we read what NumPy writes."""
import itertools
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from strace_requests import python_with_numpy

TOOL = os.path.join(os.environ["STOKER_TOOLS"], "format_tool")
PYTHON, _, VERSION = python_with_numpy()

# The tests' content, as tests/tools/test_content.h has it.
NUMPY = """
import io, json, sys, zipfile
import numpy as np
def content(n, file_index):
    o = np.arange(n, dtype=np.uint64)
    v = o * 131 + (o >> np.uint64(8)) * 7 + (o >> np.uint64(16)) * 13 + file_index * 17 + 5
    return v.astype(np.uint8)
def array(elem, shape, file_index):
    t = np.dtype(elem)
    return content(int(np.prod(shape)) * t.itemsize, file_index).view(t).reshape(shape)
def save(how, path, elem, shape, file_index):
    x = array(elem, shape, file_index); y = np.zeros(shape[-1], np.int64)
    if how == "npy": np.save(path, x)
    elif how == "npy-fortran": np.save(path, np.asfortranarray(x))
    elif how == "npy-v2":
        with open(path, "wb") as f: np.lib.format.write_array(f, x, version=(2, 0))
    elif how == "npy-v3":
        with open(path, "wb") as f: np.lib.format.write_array(f, x, version=(3, 0))
    elif how == "npy-long":
        np.save(path, x)
        with open(path, "rb") as f: b = f.read()
        with open(path, "wb") as f:
            h = b[10:127] + b" " * (8192 - 128) + b"\\n"
            f.write(b[:8] + len(h).to_bytes(2, "little") + h + b[128:])
    elif how == "npz": np.savez(path, x=x, y=y)
    elif how == "npz-yx": np.savez(path, y=y, x=x)
    elif how == "npz-deflated": np.savez_compressed(path, x=x, y=y)
    elif how == "npz-zip64":
        zipfile.ZIP64_LIMIT = 100; np.savez(path, x=x, y=y)
    elif how == "npz-streamed":
        class Pipe(io.RawIOBase):
            def __init__(self, f): self.f = f
            def writable(self): return True
            def seekable(self): return False
            def write(self, b): return self.f.write(b)
        b = io.BytesIO(); np.save(b, x)
        with open(path, "wb") as f, zipfile.ZipFile(Pipe(f), "w") as z:
            z.writestr("x.npy", b.getvalue())
    elif how == "npz-newer":
        # sizes only in the zip64 field, as Python from 3.11.4 writes them
        np.savez(path, x=x, y=y)
        with open(path, "r+b") as f: f.seek(18); f.write(b"\\xff" * 8)
    elif how == "npz-front":
        np.savez(path, x=x, y=y)
        with open(path, "rb") as f: b = f.read()
        with open(path, "wb") as f: f.write(b"PK\\3\\4 something in front of the archive" + b)
for job in json.load(sys.stdin):
    if job[0] == "save":
        save(*job[1:])
    else:
        how, path, elem, shape, file_index = job[1:]
        x = array(elem, shape, file_index)
        got = np.load(path)
        got = got if how == "npy" else got["x"]
        assert got.dtype == x.dtype and got.shape == x.shape, (path, got.dtype, got.shape)
        assert got.tobytes() == x.tobytes(), path
        if how == "npz-zip":
            with zipfile.ZipFile(path) as z:
                assert z.testzip() is None and all(i.compress_type == 8 for i in z.infolist()), path
            save("npz-deflated", path + ".real.npz", elem, shape, file_index)
            with zipfile.ZipFile(path) as a, zipfile.ZipFile(path + ".real.npz") as b:
                same = ("filename", "create_version", "extract_version", "flag_bits", "external_attr",
                        "date_time", "CRC", "file_size")
                for i, k in zip(a.infolist(), b.infolist()):
                    assert all(getattr(i, n) == getattr(k, n) for n in same), (path, i, k)
            continue
        save(how, path + ".real." + how, elem, shape, file_index)
        a = open(path, "rb").read(); b = open(path + ".real." + how, "rb").read()
        if a != b:
            at = next((i for i in range(min(len(a), len(b))) if a[i] != b[i]), min(len(a), len(b)))
            raise SystemExit("%s differs from NumPy's at byte %d: %r, NumPy %r"
                             % (path, at, a[at:at + 40], b[at:at + 40]))
"""

SHAPES = [("uint8", (32, 32, 1)), ("uint8", (4, 3, 7)), ("float32", (4, 8, 8, 2)), ("int64", (5, 1)),
          ("float16", (16, 16, 3)), ("complex128", (3, 2, 2)), ("uint8", (1, 1)), ("bool", (9, 9, 1)),
          ("uint8", (2900, 2900, 1)), ("int16", (1000, 700, 5)), ("uint8", (3,)), ("uint16", (0, 4, 2)),
          ("uint8", (1, 2, 3, 4, 5, 6, 7, 8, 9)), ("uint8", (4, 4, 600000)),
          # around the length at which the padding jumps by 64
          ("uint8", (0, 100, 100, 100, 100, 100, 100, 100, 100)),
          ("uint8", (0, 100, 100, 100, 100, 100, 100, 100, 1000)),
          ("uint8", (0, 100, 100, 100, 100, 100, 100, 1000, 1000))]


def numpy(jobs):
    import json
    subprocess.run([PYTHON, "-c", NUMPY], input=json.dumps(jobs), text=True, check=True)


def spec(path, elem, shape, file_index):
    return [path, str(file_index), elem, str(shape[-1])] + [str(d) for d in shape[:-1]]


def tool(*args):
    return subprocess.run([TOOL] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)


def read_all_ways(fmt, args, index, expect_same_bytes):
    for access, decode, python, buffer in itertools.product(
            ("framework", "native"), ("full", "verify", "none"), ("311", "314"), ("0", "1048576")):
        if decode == "verify" and not expect_same_bytes:
            continue
        run = tool("read", fmt, access, decode, python, buffer, str(index), *args)
        if run.returncode != 0:
            raise SystemExit("%s %s %s: %s" % (access, decode, args, run.stderr))


def main():
    with tempfile.TemporaryDirectory() as folder:
        jobs = []
        for i, (elem, shape) in enumerate(SHAPES):
            for fmt in ("npz", "npz-zip", "npy"):
                path = os.path.join(folder, "ours%d.%s" % (i, fmt))
                args = spec(path, elem, shape, i)
                if fmt == "npz-zip":
                    args.append("compression=zip")
                for command in ("write", "verify"):
                    run = tool(command, fmt[:3], *args)
                    if run.returncode != 0:
                        raise SystemExit("%s %s: %s" % (command, args, run.stderr))
                jobs.append(("check", fmt, path, elem, shape, i))
        numpy(jobs)
        written = len(jobs)
        jobs = []
        for how in ("npy", "npy-fortran", "npy-v2", "npy-v3", "npy-long", "npz", "npz-yx",
                    "npz-deflated", "npz-zip64", "npz-streamed", "npz-newer", "npz-front"):
            for i, (elem, shape) in enumerate(SHAPES[:6] + SHAPES[8:10]):
                fmt = how[:3]
                jobs.append(("save", how, os.path.join(folder, "%s%d.%s" % (how, i, fmt)), elem,
                             shape, i))
        numpy(jobs)
        for _, how, path, elem, shape, i in jobs:
            same = how != "npy-fortran"
            read_all_ways(how[:3], spec(path, elem, shape, i), shape[-1] - 1, same)
    print("NumPy %s: %d files of ours are right, plain ones its own byte for byte; %d of its files read"
          % (VERSION, written, len(jobs)))
    return 0


sys.exit(main())
