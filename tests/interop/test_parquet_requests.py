"""Parquet files under the real pyarrow, s3dlio and DLIO's way of reading with Python's file objects, and under
each of our patterns, both under strace: the same reads of the same files, offset and size, in the same order."""
# tier: long
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from strace_requests import skip  # noqa: E402
from util import left_out, libraries  # noqa: E402

STOKER = os.environ["STOKER"]
PYTHON = os.environ.get("STOKER_PYARROW") or libraries()
PIECE = 32 << 20  # larger requests are made in pieces
LINE = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)")

REAL = r"""
import sys
how, ahead, files = sys.argv[1], sys.argv[3] == "1", sys.argv[5:]
columns, names = sys.argv[2].split(",") if sys.argv[2] else None, sys.argv[4].split(",")
import pyarrow, pyarrow.parquet as pq
pyarrow.set_io_thread_count(1)

def extent(pf, g):
    c = [pf.metadata.row_group(g).column(i) for i in range(pf.metadata.num_columns)]
    c = [x for x in c if columns is None or x.path_in_schema.split(".")[0] in columns]
    first = [x.dictionary_page_offset if x.dictionary_page_offset else x.data_page_offset for x in c]
    return min(first), max(f + x.total_compressed_size for f, x in zip(first, c))

def dlio(path, pf):
    for g in range(pf.metadata.num_row_groups):
        begin, end = extent(pf, g)
        with open(path, "rb") as f:
            f.seek(begin)
            f.read(end - begin)

def pyarrow_(path, pf):
    for g in range(pf.metadata.num_row_groups):
        pf.read_row_group(g, columns=columns, use_threads=False)

if how == "s3dlio":
    import s3dlio
    # it takes numbers of columns, though DLIO gives it names
    index = s3dlio.PyParquetIndex(col_indices=[names.index(c) for c in columns] if columns else None, footer_cap=4 << 20)
    for f in files:
        index.ensure_indexed(["file://" + f], epoch=1, batch_size=1)
        if ahead and f != files[-1]:
            continue
        for f in files if ahead else [f]:
            ranges = [index.rg_range("file://" + f, i) for i in range(index.file_rg_count("file://" + f))]
            for i in range(0, len(ranges), 8):
                last = ranges[min(i + 8, len(ranges)) - 1]
                s3dlio.get_range("file://" + f, ranges[i][0], last[0] + last[1] - ranges[i][0])
else:
    read = dlio if how == "dlio" else pyarrow_
    opened = []
    for f in files:
        opened.append((f, pq.ParquetFile(f, pre_buffer=how == "pyarrow_pre_buffer")))
        if not ahead:
            read(*opened[-1])
    for one in opened if ahead else []:
        read(*one)
"""

WIDE = ("float32", "int8", "float16", "float64", "uint16")
# name: (writer, rows a file, rows of a group, columns, those that are chosen)
LAYOUTS = {
    "small": ("s3dlio", 5000, 300, [("a", "float32", 1), ("b", "int8", 1), ("c", "uint16", 1), ("d", "float64", 3)], "ad"),
    "wide": ("pyarrow", 3000, 500, [(f"c{i}", WIDE[i % 5], 1) for i in range(200)], [f"c{i}" for i in range(0, 200, 3)]),
    "large": ("s3dlio", 150, 1024, [("t5", "float32", 65536), ("clip", "float32", 409), ("mean", "float32", 8232),
                                    ("time", "float32", 7)], ["clip", "time"]),
}
PATTERNS = ("dlio", "s3dlio", "pyarrow", "pyarrow_pre_buffer")


def reads(command, files):
    """(file, offset, bytes returned) of all reads of the files; pieces of one large request are joined."""
    with tempfile.NamedTemporaryFile("r") as log:
        options = [x for f in files for x in ("-P", f)]
        done = subprocess.run(["strace", "--seccomp-bpf", "-f", "-s", "0", *options, "-e",
                               "trace=openat,read,pread64,lseek,close,readv,preadv", "-o", log.name, "--", *command],
                              env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"), capture_output=True, text=True)
        text = log.read()
    if "ptrace" in done.stderr and not text:
        skip("strace cannot trace here: " + done.stderr.strip())
    assert done.returncode == 0, (command, done.stderr[-2000:])
    result, place, begun = [], {}, {}
    for line in text.splitlines():
        # a call that another thread's call interrupts in the log
        pid = line.split()[0]
        if line.endswith("<unfinished ...>"):
            begun[pid] = line[:-len("<unfinished ...>")]
            continue
        if "resumed>" in line:
            line = begun.pop(pid) + line.split("resumed>", 1)[1]
        m = LINE.match(line)
        if not m:
            continue
        call, args, ret = m.group(1), m.group(2), int(m.group(3))
        if call == "openat":
            place[ret] = [files.index(args.split('"')[1]), 0]
            continue
        # those that are closed may be another's before strace says so
        if call == "close":
            continue
        at = place[int(args.split(",")[0])]
        if call == "lseek":
            at[1] = ret
        elif call == "pread64":
            result.append((at[0], int(args.rsplit(",", 1)[1]), ret))
        else:
            assert call == "read", line
            if ret > 0:
                result.append((at[0], at[1], ret))
                at[1] += ret
    joined = []
    for r in result:
        last = joined[-1] if joined else None
        if last and last[0] == r[0] and last[1] + last[2] == r[1] and last[2] >= PIECE - (1 << 20):
            joined[-1] = (r[0], last[1], last[2] + r[2])
        else:
            joined.append(r)
    return joined


def options(layout, folder):
    writer, rows, group, columns, chosen = LAYOUTS[layout]
    listed = ", ".join(f"{{name: {n}, dtype: {t}, size: {s}{', read: true' if n in chosen else ''}}}" for n, t, s in columns)
    return ["framework=pytorch", "dataset.format=parquet", "dataset.num_files_train=3", "dataset.num_files_eval=0",
            "workflow.evaluation=false", "dataset.num_subfolders_train=0", f"dataset.num_samples_per_file={rows}",
            f"dataset.parquet.row_group_size={group}", f"dataset.parquet.writer={writer}",
            f"dataset.parquet.columns=[{listed}]", f"dataset.data_folder={folder}"]


def compare(name, files, real, ours):
    theirs, mine = reads(real, files), reads(ours, files)
    if theirs == mine:
        return len(theirs)
    print(f"{name}: {len(theirs)} reads of the library, {len(mine)} of ours")
    for i in range(max(len(theirs), len(mine))):
        a, b = (theirs + [None] * len(mine))[i], (mine + [None] * len(theirs))[i]
        if a != b:
            print(f"  {i}: library {a}, ours {b}")
            break
    return -1


def main():
    if subprocess.run([PYTHON, "-c", "import pyarrow.parquet"], capture_output=True).returncode:
        skip("pyarrow is not installed (tools/setup.sh heavy; STOKER_PYARROW names a Python that has it)")
    patterns = [p for p in PATTERNS if p != "s3dlio" or
                not subprocess.run([PYTHON, "-c", "import s3dlio"], capture_output=True).returncode]
    if len(patterns) < len(PATTERNS):
        left_out("s3dlio is not installed")
    total = bad = 0
    with tempfile.TemporaryDirectory() as tmp:
        for layout in LAYOUTS:
            folder, chosen = f"{tmp}/{layout}", LAYOUTS[layout][4]
            files = [f"{folder}/train/img_{i}_of_3.parquet" for i in range(3)]
            done = subprocess.run([STOKER, "generate", "default", *options(layout, folder)], capture_output=True, text=True, cwd=tmp)
            assert done.returncode == 0, done.stderr
            # the last two: row groups ahead of the batches, one request at a time so that there is one order
            for pattern, ahead in [(p, False) for p in patterns] + [(p, True) for p in patterns if p in ("dlio", "s3dlio")]:
                for some in (False, True):
                    real = [PYTHON, "-c", REAL, pattern, ",".join(chosen) if some else "", str(int(ahead)),
                            ",".join(c[0] for c in LAYOUTS[layout][3]), *files]
                    ours = [STOKER, "run", "default", *options(layout, folder), "workflow.generate_data=false", "train.epochs=1",
                            "reader.read_threads=0", "reader.batch_size=50", "dataset.verify_samples=0", "train.computation_time=0",
                            f"reader.parquet_requests={pattern}", f"reader.parquet_columns={'marked' if some else 'all'}",
                            f"hydra.run.dir={tmp}/out"]
                    if ahead:
                        ours += ["reader.data_loader=row_groups", "storage.storage_options.prefetch_workers=1"]
                    n = compare(f"{layout}, {pattern}{', ahead' if ahead else ''}, {'some' if some else 'all'} columns", files, real, ours)
                    total, bad = total + max(n, 0), bad + (n < 0)
    print(f"{total} reads compared, {bad} cases with a difference")
    return 1 if bad or not total else 0


sys.exit(main())
