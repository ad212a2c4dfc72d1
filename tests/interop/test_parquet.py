"""Files of ours in both layouts, with every codec, up to 10,000 row groups and 200 columns, are read by pyarrow, DuckDB, Rust's
parquet, hyparquet and s3dlio with the same values at the same places; and our parser reads theirs: every codec, both page
versions, dictionaries, nulls, split streams, deltas. Datasets of theirs are trained from as they lie."""
# tier: long
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import PARQUET_READERS, fetched, left_out, libraries, load  # noqa: E402

STOKER = os.environ["STOKER"]
TOOL = os.path.join(os.environ["STOKER_TOOLS"], "parquet_tool")
# a Python that has pyarrow, which Debian has not
PYTHON = os.environ.get("STOKER_PYARROW") or libraries()
CODECS = ("none", "snappy", "gzip", "zstd", "lz4_raw")
COLUMNS = ("[{name: a, dtype: float32}, {name: b, dtype: int8}, {name: c, dtype: uint16}, {name: d, dtype: float64, size: 3}, "
           "{name: e, dtype: float16}, {name: f, dtype: bool}, {name: g, dtype: string}, {name: h, dtype: binary, size: 5}, "
           "{name: i, dtype: int64, size: 20}, {name: j, dtype: uint8, size: 300}]")
TYPES = ["f4", "i4", "i4", "f8", "f2", "b", "s", "x", "i8", "i4"]
WIDE = "[" + ", ".join(f"{{name: c{i}, dtype: float32}}" for i in range(200)) + "]"
# name: (columns, types, rows, rows of a group, codecs)
FILES = {"every": (COLUMNS, TYPES, 800, 160, CODECS),
         "wide": (WIDE, ["f4"] * 200, 300, 100, ("none", "zstd")),
         "many": ("[{name: x, dtype: uint8, size: 16}]", ["i4"], 10000, 1, ("none",)),
         # more than a dictionary holds
         "large": ("[{name: x, dtype: float32, size: 900}, {name: y, dtype: int8, size: 3}]", ["f4", "i4"], 400, 1000000,
                   ("none", "gzip"))}

PYARROW = r"""
import json, os, subprocess, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
folder, tool, jobs_of_ours = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])

def flat(column):
    a = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(a, pa.ChunkedArray): a = pa.concat_arrays(a.chunks)
    while pa.types.is_list(a.type) or pa.types.is_fixed_size_list(a.type): a = a.flatten()
    a = a.drop_null()
    if pa.types.is_fixed_size_binary(a.type): return b"".join(a.to_pylist())
    if pa.types.is_string(a.type) or pa.types.is_binary(a.type) or pa.types.is_large_string(a.type):
        raw = [v if isinstance(v, bytes) else v.encode() for v in a.to_pylist()]
        return b"".join(len(v).to_bytes(4, "little") + v for v in raw)
    v = a.to_numpy(zero_copy_only=False)
    if v.dtype.kind in "iu" and v.dtype.itemsize < 4: v = v.astype("i4")
    return v.tobytes()

def chunks(metadata):
    for g in range(metadata.num_row_groups):
        for k in range(metadata.num_columns):
            c = metadata.row_group(g).column(k)
            yield f"{g} {k} {c.dictionary_page_offset or c.data_page_offset} {c.total_compressed_size} {c.num_values}"

def places(path, options=""):
    # where everything lies, for whoever decodes nothing
    m = pq.ParquetFile(path).metadata
    p = subprocess.run([tool, path], capture_output=True, text=True)
    assert p.returncode == 0, (path, options, p.stdout[-300:], p.stderr)
    assert p.stdout.splitlines() == [*chunks(m), f"{m.num_rows} {m.num_row_groups} {m.num_columns}"], (path, options)

def decoded(path, table, options=""):
    os.makedirs(f"{folder}/out", exist_ok=True)
    p = subprocess.run([tool, path, f"{folder}/out"], capture_output=True, text=True)
    assert p.returncode == 0, (path, options, p.stdout, p.stderr)
    for k, name in enumerate(table.column_names):
        assert open(f"{folder}/out/{k}", "rb").read() == flat(table[name]), (path, options, name)

first = {}
for path, values, name, rows, groups, columns in jobs_of_ours:
    f = pq.ParquetFile(path)
    t = f.read()
    t.validate(full=True)
    assert (t.num_rows, f.metadata.num_row_groups, t.num_columns) == (rows, groups, columns), (path, t.num_rows, f.metadata)
    assert all(c.null_count == 0 for c in t.columns)
    bytes_of = [flat(c) for c in t.columns]
    # of both layouts and all codecs
    assert bytes_of == first.setdefault(name, bytes_of), path
    assert all(open(f"{values}/{k}", "rb").read() == v for k, v in enumerate(bytes_of)), path
    places(path)
    if name == "every":
        plain = t.to_pydict()
        assert all(0 <= v < 1 for v in plain["a"]) and set(plain["f"]) == {True, False} and len(set(plain["b"])) > 200
        assert all(len(v) == 300 for v in plain["j"]) and len({tuple(v) for v in plain["i"]}) == rows
        assert all(v.startswith("s_") for v in plain["g"]) and all(len(v) == 5 for v in plain["h"])

rng = np.random.default_rng(7)
n = 30000
some = rng.random(n) < 0.3
table = pa.table({
    "f32": pa.array(rng.random(n, "f4")), "i8": pa.array(rng.integers(-128, 128, n, "i1")),
    "u16": pa.array(rng.integers(0, 999, n, "u2")), "i64": pa.array(rng.integers(0, 9, n, "i8"), mask=some),
    "f64": pa.array(np.arange(n, dtype="f8")), "bool": pa.array(rng.random(n) < 0.5, mask=some),
    "half": pa.array(rng.random(n).astype("f2")), "text": pa.array([None if i % 7 == 0 else "x" * (i % 50) for i in range(n)]),
    "list": pa.array([None if i % 5 == 0 else list(range(i % 4)) for i in range(n)], pa.list_(pa.int32())),
    "fixed": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(3 * n, "f4")), 3)})
wide = pa.table({f"c{i}": pa.array(rng.random(500, "f4")) for i in range(200)})
tall = pa.table({"x": pa.array(np.arange(10000, dtype="i4"))})
jobs = [(table, dict(compression=c, data_page_version=v, use_dictionary=d, row_group_size=7000, data_page_size=4096))
        for c in ("none", "snappy", "gzip", "zstd", "lz4") for v in ("1.0", "2.0") for d in (True, False)]
jobs += [(wide, dict(row_group_size=100)), (tall, dict(row_group_size=1)), (tall, dict(row_group_size=10000)),
         (tall, dict(row_group_size=100, write_page_index=True, write_page_checksum=True)),
         (wide, dict(use_dictionary=False, use_byte_stream_split=True))]
theirs = f"{folder}/theirs"
for i, (t, options) in enumerate(jobs):
    pq.write_table(t, theirs, **options)
    places(theirs, options)
    decoded(theirs, t, options)
# encodings of one column each, with and without nulls
more = pa.table({**{c: table[c] for c in table.column_names},
    "i32": pa.array(rng.integers(-2**31, 2**31, n, "i8").astype("i4")), "wide": pa.array(rng.integers(-2**63, 2**63 - 1, n, "i8"), mask=some),
    "near": pa.array(np.cumsum(rng.integers(0, 3, n)).astype("i8")), "u64": pa.array(rng.integers(0, 2**64, n, "u8")),
    "bytes": pa.array([bytes(rng.integers(0, 256, i % 9, "u1")) for i in range(n)], pa.binary()),
    "paths": pa.array([None if i % 13 == 0 else f"/data/train/class{i // 500:03d}/image{i:06d}.jpg" for i in range(n)]),
    "hash": pa.array([bytes(rng.integers(0, 4, 20, "u1")) for i in range(n)], pa.binary(20)),
    "large": pa.array([chr(97 + i % 3) * (90000 if i % 9999 == 5 else 3) for i in range(n)], pa.large_string()),
    "names": pa.array([None if i % 5 == 0 else [f"a{i}", f"a{i + 1}"] for i in range(n)], pa.list_(pa.string())),
    "decimal": pa.array([i * 7 - 5000 for i in range(n)], pa.decimal128(12, 2))})
DELTAS = {"DELTA_BINARY_PACKED": ("i64", "u16", "i8", "i32", "wide", "near", "u64", "list"),
          "DELTA_LENGTH_BYTE_ARRAY": ("text", "bytes", "paths", "large", "names"),
          "DELTA_BYTE_ARRAY": ("text", "bytes", "paths", "hash", "large", "names"),
          "BYTE_STREAM_SPLIT": ("f32", "f64", "half", "i32", "i64", "wide", "hash", "decimal", "fixed"), "RLE": ("bool",)}
coded = 0
for encoding, names in DELTAS.items():
    for name in names:
        leaf = {"list": "list.list.element", "names": "names.list.element", "fixed": "fixed.list.element"}.get(name, name)
        for v, codec, page in (("1.0", "none", 1 << 20), ("2.0", "zstd", 4096)):
            t = more.select([name])
            pq.write_table(t, theirs, use_dictionary=False, column_encoding={leaf: encoding}, data_page_version=v, compression=codec,
                           data_page_size=page, row_group_size=11000)
            assert encoding in str(pq.ParquetFile(theirs).metadata.row_group(0).column(0).encodings), (encoding, name)
            if name == "decimal":  # it lies there with the decimals, in as many bytes as the digits need
                raw = [((i * 7 - 5000) * 100).to_bytes(6, "big", signed=True) for i in range(n)]
                t = pa.table({name: pa.array(raw, pa.binary(6))})
            places(theirs, encoding)
            decoded(theirs, t, (encoding, name, v))
            coded += 1
pq.write_table(wide, theirs, compression="brotli")
places(theirs, "brotli")
decoded(theirs, wide, "brotli")
print(f"{len(jobs) + coded + 1} files of pyarrow {pa.__version__} decoded, {len(jobs_of_ours)} of ours read")

try:
    import s3dlio
except ImportError:
    print("left out: s3dlio is not installed (tools/setup.sh heavy)")
    sys.exit(0)
for columns, rows, groups in (([(f"c{i}", 1) for i in range(200)], 64, 3), ([("t5", 300), ("clip", 4), ("time", 1)], 10, 40)):
    s3dlio.generate_and_write_parquet_schema("file://" + theirs + ".parquet", columns=columns, rows_per_rg=rows, num_row_groups=groups)
    places(theirs + ".parquet")
    decoded(theirs + ".parquet", pq.ParquetFile(theirs + ".parquet").read())
looked = 0
for path, values, name, rows, groups, columns in jobs_of_ours:
    uri, index, m = "file://" + path, s3dlio.PyParquetIndex(), pq.ParquetFile(path).metadata
    index.ensure_indexed([uri], epoch=1)
    at = 0
    for g in range(0, groups, max(1, groups // 20)):
        at = sum(m.row_group(k).num_rows for k in range(g)) if groups < 100 else g
        start = m.row_group(g).column(0)
        want = (g, start.dictionary_page_offset or start.data_page_offset,
                sum(m.row_group(g).column(k).total_compressed_size for k in range(columns)))
        assert tuple(index.rg_lookup(uri, at)) == want, (path, g, index.rg_lookup(uri, at), want)
        looked += 1
print(f"s3dlio finds {looked} row groups of ours where they lie")
"""

# datasets as others leave them: Hugging Face's hub, Spark, 10^4 row groups, one of each, partitions
DATASETS = r"""
import os, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
folder = sys.argv[1]
def table(n, seed):
    r = np.random.default_rng(seed)
    return pa.table({"id": pa.array(np.arange(n, dtype="i8")), "image": pa.array([{"bytes": r.bytes(int(r.integers(100, 3000))),
        "path": f"x{i}.jpg"} if i % 11 else None for i in range(n)], pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
        "tokens": pa.array([None if i % 5 == 0 else list(range(i % 40)) for i in range(n)], pa.list_(pa.int32())),
        "text": pa.array([None if i % 7 == 0 else f"word {i % 50}" * (i % 9) for i in range(n)])})
def write(name, t, **options):
    os.makedirs(os.path.dirname(f"{folder}/{name}"), exist_ok=True)
    pq.write_table(t, f"{folder}/{name}", **options)
for i, (n, g) in enumerate([(1000, 300), (1000, 128), (417, 1000)]):
    write(f"hub/data/train-{i:05d}-of-00003-ab12cd34ef.parquet", table(n, i), row_group_size=g, compression="zstd")
write("hub/data/test-00000-of-00001-99aa.parquet", table(230, 9), row_group_size=100)
for i, n in enumerate((500, 500, 0, 123)):
    write(f"spark/part-{i:05d}-5b3c1c5e-27f4-4b0e-9d2f-5c9d3a1d7f11-c000.snappy.parquet", table(n, i), row_group_size=200)
open(f"{folder}/spark/_SUCCESS", "w").close()
write("many/a.parquet", pa.table({"x": pa.array(np.arange(20000, dtype="i4"))}), row_group_size=2)
write("many/b.parquet", pa.table({"x": pa.array(np.arange(77, dtype="i4"))}))
for year in (2023, 2024):
    write(f"partitions/year={year}/part-0.parquet", table(300 + year % 7, year), row_group_size=100, data_page_version="2.0",
          use_dictionary=False, column_encoding={"id": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY"})
write("empty/a.parquet", table(0, 0))
"""
ROWS = {"hub": 2417, "spark": 1123, "many": 20077, "partitions": 601}

DUCKDB = ("COPY (SELECT i::INT AS a, (i * 7919 % 1000)::BIGINT AS b, i / 3.0::DOUBLE AS c, (i / 7.0)::FLOAT AS d, "
          "CASE WHEN i % 5 = 0 THEN NULL ELSE 'text ' || (i % 40) END AS e, i % 3 = 0 AS f, [i, i + 1]::INT[] AS g "
          "FROM range(9000) t(i)) TO '{}' (FORMAT parquet, COMPRESSION {}, ROW_GROUP_SIZE 2048, PARQUET_VERSION {})")


def ours(tmp):
    """Files of ours, with the values that our own parser finds in them."""
    made = []
    for name, (columns, types, rows, group, codecs) in FILES.items():
        for codec in codecs:
            for writer in ("s3dlio", "pyarrow"):
                folder = f"{tmp}/{name}-{codec}-{writer}"
                done = subprocess.run(
                    [STOKER, "generate", "default", "framework=pytorch", "dataset.format=parquet", f"dataset.data_folder={folder}",
                     f"dataset.compression={codec}", f"dataset.parquet.writer={writer}", "dataset.num_files_train=1",
                     "dataset.num_files_eval=0", "workflow.evaluation=false", "dataset.num_subfolders_train=0",
                     f"dataset.num_samples_per_file={rows}", f"dataset.parquet.row_group_size={group}",
                     f"dataset.parquet.columns={columns}"], capture_output=True, text=True, cwd=tmp)
                assert done.returncode == 0, done.stderr
                path, values = f"{folder}/train/img_0_of_1.parquet", f"{folder}/values"
                os.mkdir(values)
                done = subprocess.run([TOOL, path, values], capture_output=True, text=True)
                groups = -(-rows // group)
                assert done.stdout.split() == [str(rows), str(groups), str(len(types))], (folder, done.stdout, done.stderr)
                made.append((path, values, name, rows, groups, len(types)))
    return made


def with_pyarrow(tmp, made):
    if subprocess.run([PYTHON, "-c", "import pyarrow.parquet, numpy"], capture_output=True).returncode:
        left_out("pyarrow is not installed (tools/setup.sh heavy; STOKER_PYARROW names a Python that has it)")
        return
    done = subprocess.run([PYTHON, "-c", PYARROW, tmp, TOOL, json.dumps(made)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    print(done.stdout, end="")


def trained(tmp):
    """Datasets of theirs, as they lie: each row once."""
    if subprocess.run([PYTHON, "-c", "import pyarrow.parquet"], capture_output=True).returncode:
        return
    subprocess.run([PYTHON, "-c", DATASETS, tmp], check=True)
    for name, rows in ROWS.items():
        for extra in (["reader.access=native"], ["reader.data_loader=row_groups", "reader.batch_size=1", "reader.read_threads=1"]):
            batch = 1 if "row_groups" in str(extra) else 7
            done = subprocess.run(
                [STOKER, "run", "--data", f"{tmp}/{name}", "reader.batch_size=7", "train.epochs=1", "train.computation_time=0",
                 "run.probe=false", *extra, f"hydra.run.dir={tmp}/run"], capture_output=True, text=True, cwd=tmp)
            assert done.returncode == 0, (name, extra, done.stderr)
            result = load(f"{tmp}/run")
            order = [v for v in result["verdicts"] if v["check"] == "order"][0]
            whole = rows // batch * batch
            told = f"each of the {rows} samples" if whole == rows else f"{whole} of {rows} samples were delivered, each exactly once"
            assert order["level"] == "pass" and told in str(order), (name, extra, order)
    done = subprocess.run([STOKER, "run", "--data", f"{tmp}/empty"], capture_output=True, text=True, cwd=tmp)
    assert done.returncode and "has a sample" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    print(f"trained from {len(ROWS)} datasets of pyarrow as they lie")


def lines(chunks):
    """As parquet_tool prints them."""
    return [f"{g} {k} {dictionary or data} {stored} {values}" for g, k, data, dictionary, stored, values, _ in chunks]


def plain(kind, values):
    values = [v for v in values if v is not None]
    if kind == "text":
        return b"".join(struct.pack("<I", len(v)) + v.encode() for v in values)
    if kind == "bool":
        return bytes(values)
    if kind == "list":
        kind, values = "i", [x for v in values for x in v]
    return struct.pack(f"<{len(values)}{kind}", *(int(v) if kind in "iq" else v for v in values))


def with_others(tmp, made):
    """DuckDB, Rust's parquet and hyparquet."""
    node = shutil.which("node")
    if not node or not os.path.exists(fetched(f"{PARQUET_READERS}/complete")):
        left_out("DuckDB and other readers of Parquet are not installed (tools/setup.sh heavy fetches them with npm)")
        return
    write = [(f"{tmp}/duck-{codec}-{version}", codec, version) for codec in ("uncompressed", "snappy", "zstd", "gzip", "lz4_raw", "brotli")
             for version in ("V1", "V2")]
    job = {"read": [{"file": path, "values": values, "types": FILES[name][1]} for path, values, name, *_ in made],
           "chunks": [path for path, *_ in made],
           "write": [{"file": path, "sql": DUCKDB.format(path, codec, version)} for path, codec, version in write]}
    done = subprocess.run([node, os.path.join(os.path.dirname(__file__), "parquet_readers.mjs"), fetched(PARQUET_READERS)],
                          input=json.dumps(job), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    for (path, _, _, rows, groups, columns), chunks in zip(made, seen["chunks"]):
        told = subprocess.run([TOOL, path], capture_output=True, text=True).stdout.splitlines()
        assert told == [*lines(chunks), f"{rows} {groups} {columns}"], path
    decoded = 0
    for (path, codec, version), it in zip(write, seen["written"]):
        told = subprocess.run([TOOL, path], capture_output=True, text=True)
        assert told.returncode == 0 and told.stdout.splitlines()[:-1] == lines(it["chunks"]), (path, told.stdout[-300:])
        out = f"{tmp}/out-duck"
        os.makedirs(out, exist_ok=True)
        done = subprocess.run([TOOL, path, out], capture_output=True, text=True)
        assert done.returncode == 0, (path, it["encodings"], done.stdout, done.stderr)
        for k, kind in enumerate(("i", "q", "d", "f", "text", "bool", "list")):
            with open(f"{out}/{k}", "rb") as f:
                assert f.read() == plain(kind, it["columns"][k]), (path, k)
        decoded += 1
    assert decoded
    print(f"{', '.join(seen['readers'])} read {len(made)} files of ours ({seen['compared']} columns); of DuckDB's files "
          f"{decoded} decoded")


def main():
    with tempfile.TemporaryDirectory() as tmp:
        made = ours(tmp)
        with_pyarrow(tmp, made)
        trained(tmp)
        with_others(tmp, made)


main()
