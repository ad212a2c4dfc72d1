"""np.load under strace, beside our framework reader under strace: the same opens and the same reads,
offset, size asked and size returned, in the same order."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from strace_requests import explain, python_with_numpy, requests

TOOL = os.path.join(os.environ["STOKER_TOOLS"], "format_tool")
PYTHON, GENERATION, _ = python_with_numpy()

MAKE = """
import sys, numpy as np
kind, path, elem, shape = sys.argv[1], sys.argv[2], sys.argv[3], eval(sys.argv[4])
n = int(np.prod(shape))
x = np.random.default_rng(1).integers(0, 251, n * np.dtype(elem).itemsize, dtype=np.uint8)
x = x.view(elem).reshape(shape)
if kind == "npy": np.save(path, x)
elif kind == "npz": np.savez(path, x=x, y=np.zeros(shape[-1], np.int64))
elif kind == "yx": np.savez(path, y=np.zeros(shape[-1], np.int64), x=x)
elif kind == "deflated": np.savez_compressed(path, x=x, y=np.zeros(shape[-1], np.int64))
elif kind == "deflated-flat": np.savez_compressed(path, x=np.zeros_like(x), y=np.zeros(shape[-1], np.int64))
elif kind == "zip64":
    import zipfile
    zipfile.ZIP64_LIMIT = 100
    np.savez(path, x=x, y=np.zeros(shape[-1], np.int64))
elif kind == "comment":
    np.savez(path, x=x, y=np.zeros(shape[-1], np.int64))
    import zipfile
    with zipfile.ZipFile(path, "a") as z: z.comment = b"a comment" * 5
"""
LOAD = """
import sys, numpy as np
a = np.load(sys.argv[1], allow_pickle=True)
if sys.argv[1].endswith("npz"): a["x"]
"""

# kind, element type, shape, preferred request sizes of the file system (None: the real one)
BLOCKS = (None, 512, 65536, 1048576)
CASES = [(k, "uint8", (n, 1, 1), (None,)) for k in ("npz", "npy")
         for n in (0, 1, 100, 3700, 3913, 3914, 3967, 3968, 3969, 4041, 4096, 8000)]
CASES += [(k, "uint8", (n, 1, 1), (None,)) for k in ("npz", "npy") for n in (262144, 266241)]
CASES += [(k, "uint8", (150000, 1, 1), BLOCKS) for k in ("npz", "npy")]
CASES += [(k, "uint8", (2048, 2048, 1), BLOCKS) for k in ("npz", "npy")]
CASES += [(k, "float32", (4472, 1118, 1), (None,)) for k in ("npz", "npy")]
CASES += [("npz", "float64", (100, 100, 7), (None,)), ("npy", "complex128", (100, 100, 7), (None,))]
CASES += [("yx", "uint8", (150000, 1, 2), (None, 65536)),
          ("deflated", "uint8", (1000000, 1, 1), (None, 65536)),
          ("deflated-flat", "uint8", (3000000, 1, 1), (None, 65536)),
          ("ours-zip", "uint8", (1000000, 1, 1), (None, 65536)),
          ("ours-zip", "float32", (100, 70, 9), (None,)),
          ("zip64", "uint8", (150000, 1, 1), (None, 65536)),
          ("comment", "uint8", (150000, 1, 1), (None,))]


def ours(path, fmt, elem, shape, decode="full"):
    return [TOOL, "read", fmt, "framework", decode, GENERATION, "0", "0", path, "0", elem,
            str(shape[-1])] + [str(d) for d in shape[:-1]]


def main():
    bad = compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind, elem, shape, blocks in CASES:
            fmt = "npy" if kind == "npy" else "npz"
            path = os.path.join(folder, "f." + fmt)
            make = [PYTHON, "-c", MAKE, kind, path, elem, repr(shape)]
            if kind == "ours-zip":
                make = [TOOL, "write", "npz", path, "0", elem, str(shape[-1])]
                make += [str(d) for d in shape[:-1]] + ["compression=zip"]
            subprocess.run(make, check=True)
            for block in blocks:
                name = "%s %s %s, request size %s" % (kind, elem, shape, block)
                real, _ = requests([PYTHON, "-c", LOAD, path], path, block)
                mine, _ = requests(ours(path, fmt, elem, shape), path, block)
                compared += len(real)
                if real != mine:
                    explain(name, real, mine)
                    bad += 1
    print("%d requests compared, %d files with a difference" % (compared, bad))
    return 1 if bad or not compared else 0


sys.exit(main())
