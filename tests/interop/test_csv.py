"""csv files under pandas: ours read by it, and its requests beside ours under strace."""
# takes 25 s
import gzip
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from strace_requests import explain, requests, skip

STOKER = os.environ["STOKER"]
TOOL = os.path.join(os.environ["STOKER_TOOLS"], "format_tool")
PYTHON = "/usr/bin/python3"

if subprocess.run([PYTHON, "-c", "import pandas"], capture_output=True).returncode:
    skip("pandas is not installed for " + PYTHON)
MINOR, PANDAS = subprocess.run([PYTHON, "-c", "import sys, pandas; print(sys.version_info[1], pandas.__version__)"],
                               capture_output=True, text=True).stdout.split()
GENERATION = "314" if int(MINOR) >= 14 else "311"

CHECK = """
import sys
import numpy as np, pandas as pd
path, elem, samples, columns, file_index = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
got = pd.read_csv(path, compression="infer", header=None).to_numpy()
o = np.arange(samples * columns * np.dtype(elem).itemsize, dtype=np.uint64)
raw = (o * 131 + (o >> 8) * 7 + (o >> 16) * 13 + file_index * 17 + 5).astype(np.uint8)
want = raw.view(elem).reshape(samples, columns)
assert got.shape == want.shape, got.shape
if want.dtype.kind == "f":
    # every value of the type, with its infinities and what is no number
    with np.errstate(all="ignore"):
        same = (got.astype(elem) == want) | np.isnan(got.astype(elem)) & np.isnan(want)
        near = np.isclose(got, want.astype("f8"), rtol=1e-3 if elem == "float16" else 1e-6, atol=0)
    assert (same | near).all()
else:
    assert (got == want).all()
"""
THEIRS = """
import sys
import numpy as np, pandas as pd
path, elem, samples, columns = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rng = np.random.default_rng(1)
a = rng.random((samples, columns))
a = a.astype(elem) if np.dtype(elem).kind == "f" else (a * 254).astype(elem)
pd.DataFrame(a).to_csv(path, index=False, header=False, compression="infer")
"""
LOAD = """
import sys, pandas as pd
pd.read_csv(sys.argv[1], compression="infer", header=None).to_numpy()
"""


def run(*args):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit("%s failed:\n%s%s" % (args[:2], done.stdout, done.stderr))
    return done.stdout


def check_ours(folder):
    path = os.path.join(folder, "f.csv")
    for elem, samples, columns in (("uint8", 1, 1), ("uint8", 2000, 7), ("int16", 2, 3000), ("uint32", 2, 900),
                                   ("int64", 2, 900), ("float16", 2, 4000), ("float32", 2, 1000)):
        run(TOOL, "write", "csv", path, 3, elem, samples, columns)
        run(PYTHON, "-c", CHECK, path, elem, samples, columns, 3)
    print("pandas %s reads ours" % PANDAS)


def check_requests(folder):
    bad = compared = 0
    cases = [("csv", "uint8", 1, 10, (None,)), ("csv", "uint8", 1, 73440, (None, 65536)),
             ("csv", "uint8", 300, 1500, (None,)), ("csv", "float32", 40, 1500, (None,)),
             ("csv.gz", "uint8", 1, 10, (None,)), ("csv.gz", "uint8", 1, 70000, (None, 512, 65536, 1048576)),
             ("csv.gz", "uint8", 300, 1500, (None,)), ("csv.gz", "float64", 40, 1500, (65536,))]
    for extension, elem, samples, columns, blocks in cases:
        path = os.path.join(folder, "theirs." + extension)
        run(PYTHON, "-c", THEIRS, path, elem, samples, columns)
        for block in blocks:
            mine, _ = requests([TOOL, "read", "csv", "framework", "full", GENERATION, "0", "0", path, "0", elem,
                                str(samples), str(columns)] +
                               (["compression=gzip"] if extension.endswith("gz") else []), path, block)
            real, _ = requests([PYTHON, "-c", LOAD, path], path, block)
            compared += len(real)
            if real != mine:
                explain("%s %s %d x %d, request size %s" % (extension, elem, samples, columns, block), real, mine)
                bad += 1
    print("%d requests compared, %d files with a difference" % (compared, bad))
    assert compared and not bad


def check_dataset(folder):
    data = os.path.join(folder, "data")
    workload = os.path.join(folder, "w.yaml")
    with open(workload, "w") as f:
        f.write("model: {name: m}\nframework: pytorch\n")
    for compression, compat, extension in (("none", "false", ".csv"), ("gzip", "false", ".csv.gz"),
                                           ("gzip", "true", ".csv")):
        keys = ["dataset.format=csv", "dataset.num_files_train=8", "dataset.num_samples_per_file=4",
                "dataset.record_length_bytes=9000", "dataset.data_folder=" + data, "workflow.generate_data=true",
                "workflow.train=false", "dataset.compression=" + compression, "compat.dlio=" + compat]

        def stoker(command, *more):
            return subprocess.run([STOKER, command, workload] + keys + list(more), capture_output=True, text=True,
                                  cwd=folder)

        done = stoker("generate")
        assert done.returncode == 0, done.stderr + done.stdout
        names = sorted(os.listdir(os.path.join(data, "train")))
        assert names == ["img_%d_of_8%s" % (i, extension) for i in range(8)], names
        for name in names:
            path = os.path.join(data, "train", name)
            with (gzip.open if compression == "gzip" else open)(path, "rt") as f:
                rows = f.read().split("\n")
            assert len(rows) == 5 and rows[4] == "" and len(set(rows)) == 5, "rows are to differ"
            assert all(len(row.split(",")) == 94 * 94 for row in rows[:4])
            if extension != ".csv" or compression == "none":
                run(PYTHON, "-c", LOAD, path)
        done = stoker("verify")
        assert done.returncode == 0, done.stderr + done.stdout
        done = stoker("generate")
        assert done.returncode == 0, done.stderr
        path = os.path.join(data, "train", names[1])
        with open(path, "ab") as f:
            f.write(b"1")
        done = stoker("verify")
        assert done.returncode == 1 and path in done.stderr + done.stdout, done.stderr + done.stdout
        os.unlink(path)
        done = stoker("generate")
        assert done.returncode == 0, done.stderr
        done = stoker("run", "workflow.train=true", "workflow.generate_data=false", "reader.batch_size=2",
                      "train.epochs=1", "train.computation_time=0.001", "reader.decode=verify", "reader.read_threads=2")
        assert done.returncode == 0, done.stderr + done.stdout
        for d, _, files in os.walk(data, topdown=False):
            for name in files:
                os.unlink(os.path.join(d, name))
            os.rmdir(d)
    print("datasets are generated, verified and read")


with tempfile.TemporaryDirectory() as tmp:
    check_ours(tmp)
    check_requests(tmp)
    check_dataset(tmp)
