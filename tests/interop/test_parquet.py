"""The real pyarrow reads what we write, in both layouts and with every codec, and our parser reads what
pyarrow writes: every codec, both page versions, dictionaries, nulls, many row groups and columns."""
# tier: long
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import libraries, skip  # noqa: E402

STOKER = os.environ["STOKER"]
TOOL = os.path.join(os.environ["STOKER_TOOLS"], "parquet_tool")
# a Python that has pyarrow, which Debian has not
PYTHON = os.environ.get("STOKER_PYARROW") or libraries()
CODECS = ("none", "snappy", "gzip", "zstd", "lz4_raw")
COLUMNS = ("[{name: a, dtype: float32}, {name: b, dtype: int8}, {name: c, dtype: uint16}, {name: d, dtype: float64, size: 3}, "
           "{name: e, dtype: float16}, {name: f, dtype: bool}, {name: g, dtype: string}, {name: h, dtype: binary, size: 5}, "
           "{name: i, dtype: int64, size: 20}, {name: j, dtype: uint8, size: 300}]")

PYARROW = r"""
import glob, os, subprocess, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
folder, tool = sys.argv[1:]
plain = None
for codec in %r:
    for writer in ("s3dlio", "pyarrow"):
        path, = glob.glob(f"{folder}/{codec}-{writer}/train/*.parquet")
        f = pq.ParquetFile(path)
        t = f.read()
        t.validate(full=True)
        assert (t.num_rows, f.metadata.num_row_groups) == (5000, 5), (path, t.num_rows, f.metadata.num_row_groups)
        assert all(c.null_count == 0 for c in t.columns)
        values = t.to_pydict()
        plain = plain or values
        assert values == plain, path
assert all(0 <= v < 1 for v in plain["a"]) and set(plain["f"]) == {True, False} and len(set(plain["b"])) == 256
assert all(len(v) == 300 for v in plain["j"]) and len({tuple(v) for v in plain["i"]}) == 5000
assert all(v.startswith("s_") for v in plain["g"]) and all(len(v) == 5 for v in plain["h"])

def flat(column):
    a = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(a, pa.ChunkedArray): a = pa.concat_arrays(a.chunks)
    while pa.types.is_list(a.type) or pa.types.is_fixed_size_list(a.type): a = a.flatten()
    a = a.drop_null()
    if pa.types.is_string(a.type) or pa.types.is_binary(a.type):
        raw = [v if isinstance(v, bytes) else v.encode() for v in a.to_pylist()]
        return b"".join(len(v).to_bytes(4, "little") + v for v in raw)
    v = a.to_numpy(zero_copy_only=False)
    if v.dtype.kind in "iu" and v.dtype.itemsize < 4: v = v.astype("i4")
    return v.tobytes()

rng = np.random.default_rng(7)
n = 30000
some = rng.random(n) < 0.3
table = pa.table({
    "f32": pa.array(rng.random(n, "f4")), "i8": pa.array(rng.integers(-128, 128, n, "i1")),
    "u16": pa.array(rng.integers(0, 999, n, "u2")), "i64": pa.array(rng.integers(0, 9, n, "i8"), mask=some),
    "f64": pa.array(np.arange(n, dtype="f8")), "bool": pa.array(rng.random(n) < 0.5, mask=some),
    "half": pa.array(rng.random(n).astype("f2")), "text": pa.array([None if i %% 7 == 0 else "x" * (i %% 50) for i in range(n)]),
    "list": pa.array([None if i %% 5 == 0 else list(range(i %% 4)) for i in range(n)], pa.list_(pa.int32())),
    "fixed": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(3 * n, "f4")), 3)})
wide = pa.table({f"c{i}": pa.array(rng.random(500, "f4")) for i in range(200)})
tall = pa.table({"x": pa.array(np.arange(10000, dtype="i4"))})
jobs = [(table, dict(compression=c, data_page_version=v, use_dictionary=d, row_group_size=7000, data_page_size=4096))
        for c in ("none", "snappy", "gzip", "zstd", "lz4") for v in ("1.0", "2.0") for d in (True, False)]
jobs += [(wide, dict(row_group_size=100)), (tall, dict(row_group_size=1)), (tall, dict(row_group_size=10000)),
         (wide, dict(use_dictionary=False, use_byte_stream_split=True))]
for i, (t, options) in enumerate(jobs):
    pq.write_table(t, f"{folder}/theirs", **options)
    os.makedirs(f"{folder}/out", exist_ok=True)
    p = subprocess.run([tool, f"{folder}/theirs", f"{folder}/out"], capture_output=True, text=True)
    assert p.returncode == 0, (options, p.stdout, p.stderr)
    groups = pq.ParquetFile(f"{folder}/theirs").metadata.num_row_groups
    assert p.stdout.split() == [str(t.num_rows), str(groups), str(t.num_columns)], (options, p.stdout)
    for k, name in enumerate(t.column_names):
        ours = open(f"{folder}/out/{k}", "rb").read()
        assert ours == flat(t[name]), (options, name)
pq.write_table(wide, f"{folder}/theirs", compression="brotli")
p = subprocess.run([tool, f"{folder}/theirs", f"{folder}/out"], capture_output=True, text=True)
assert p.returncode == 1 and "brotli" in p.stdout, p.stdout
print(f"{len(jobs)} files of pyarrow {pa.__version__}, {2 * len(%r)} of ours")
""" % (CODECS, CODECS)


def main():
    if subprocess.run([PYTHON, "-c", "import pyarrow.parquet, numpy"], capture_output=True).returncode:
        skip("pyarrow is not installed (tools/setup.sh heavy; STOKER_PYARROW names a Python that has it)")
    with tempfile.TemporaryDirectory() as tmp:
        for codec in CODECS:
            for writer in ("s3dlio", "pyarrow"):
                done = subprocess.run(
                    [STOKER, "generate", "default", "framework=pytorch", "dataset.format=parquet", f"dataset.data_folder={tmp}/{codec}-{writer}",
                     f"dataset.compression={codec}", f"dataset.parquet.writer={writer}", "dataset.num_files_train=1",
                     "dataset.num_files_eval=0", "workflow.evaluation=false", "dataset.num_subfolders_train=0",
                     "dataset.num_samples_per_file=5000", f"dataset.parquet.columns={COLUMNS}"], capture_output=True, text=True, cwd=tmp)
                assert done.returncode == 0, done.stderr
        done = subprocess.run([PYTHON, "-c", PYARROW, tmp, TOOL], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        print(done.stdout, end="")


main()
