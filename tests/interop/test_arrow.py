"""Files of format arrow_stream beside Hugging Face's `datasets` (STOKER_PYTHON, or a Python that has it): it loads ours, we read what it
keeps in its cache, and from a file that no cache holds both bring in the same pages."""
# tier: long
# mostly waits
import ctypes
import mmap
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from util import LIBRARIES_OF_ARROW, left_out, libraries, load, skip  # noqa: E402

STOKER = os.environ["STOKER"]
TOOL = os.path.join(os.environ["STOKER_TOOLS"], "format_tool")
# every sample: bytes, their sum, label; the content is that of tests/tools/test_content.h
TELL = """
import sys, datasets
for path in sys.argv[1:]:
    for row in datasets.Dataset.from_file(path):
        print(len(row['data']), sum(row['data']), row['label'])
"""
# what load_dataset and map leave in a cache, by the writer that they have
WRITE = """
import io, json, sys
import datasets
from datasets import Array2D, Features, Image, List, Value
from datasets.arrow_writer import ArrowWriter
def fill(file_index, offset, n):
    return bytes((o * 131 + (o >> 8) * 7 + (o >> 16) * 13 + file_index * 17 + 5) & 255 for o in range(offset, offset + n))
COLUMNS = {
    "bytes": (Features({"data": Value("binary"), "label": Value("int64")}), lambda p, i: {"data": p, "label": i}),
    "image": (Features({"label": Value("int32"), "image": Image(decode=False), "ok": Value("bool")}),
              lambda p, i: {"label": i, "image": {"bytes": p, "path": "x" * (i % 7)}, "ok": i % 2 == 0}),
    "tokens": (Features({"text": Value("string"), "input_ids": List(Value("uint8")), "mask": List(Value("int32"))}),
               lambda p, i: {"text": "t" * (i % 50), "input_ids": list(p), "mask": [i] * (len(p) + i % 3)}),
    "fixed": (Features({"x": List(Value("uint8"), length=int(sys.argv[3])), "y": Value("float16")}), lambda p, i: {"x": list(p), "y": 1.5}),
    "missing": (Features({"a": Value("string"), "data": Value("large_binary")}), lambda p, i: {"a": None if i % 3 else "a", "data": p}),
}
folder, samples, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for name, (features, row) in COLUMNS.items():
    writer = ArrowWriter(features=features, path=f"{folder}/{name}.arrow")
    for i in range(samples):
        writer.write(row(fill(3, i * n, n), i))
    writer.finalize()
print(*COLUMNS)
"""
# what pyarrow writes besides: forms of the payload's column beside others, as streams and files, compressed and not
KINDS = """
import sys
import pyarrow as pa
def fill(file_index, offset, n):
    return bytes((o * 131 + (o >> 8) * 7 + (o >> 16) * 13 + file_index * 17 + 5) & 255 for o in range(offset, offset + n))
folder, samples, n, rows = sys.argv[1], *map(int, sys.argv[2:])
data = [fill(3, i * n, n) for i in range(samples)]
FORMS = {
    "large": lambda d, at: pa.array(d, pa.large_binary()),
    "view": lambda d, at: pa.array(d, pa.binary_view()),
    "wide": lambda d, at: pa.array(d, pa.binary(n)),
    "list": lambda d, at: pa.array([list(x) for x in d], pa.large_list(pa.uint8())),
    "pieces": lambda d, at: pa.array([list(x) for x in d], pa.list_(pa.uint8(), n)),
    # each batch's dictionary is longer than the one before
    "growing": lambda d, at: pa.DictionaryArray.from_arrays(pa.array(range(at, at + len(d)), pa.int16()), pa.array(data[:at + len(d)], pa.binary())),
    # and here another
    "other": lambda d, at: pa.DictionaryArray.from_arrays(pa.array(range(len(d)), pa.uint32()), pa.array(d, pa.large_binary())),
}
for form, make in FORMS.items():
    batches = []
    for at in range(0, samples, rows):
        d = data[at:at + rows]
        words = pa.array([None if i % 5 == 0 else "w" * (1 + i % 3) for i in range(len(d))])
        batches.append(pa.RecordBatch.from_arrays(
            [words.dictionary_encode(), words.cast(pa.string_view()), pa.array([i % 2 == 0 for i in range(len(d))]), make(d, at),
             pa.array([[str(i)] * (i % 4) for i in range(len(d))], pa.list_(pa.large_string()))], ["d", "v", "b", "data", "l"]))
    for codec in (None, "lz4", "zstd"):
        for kind, new in (("stream", pa.ipc.new_stream), ("file", pa.ipc.new_file)):
            if kind == "file" and form == "other":
                continue  # a file has one of each
            options = pa.ipc.IpcWriteOptions(compression=codec, emit_dictionary_deltas=True, unify_dictionaries=kind == "file")
            path = f"{folder}/{form}-{codec}-{kind}.arrow"
            with new(path, batches[0].schema, options=options) as out:
                out.write_table(pa.Table.from_batches(batches))
            with pa.memory_map(path) as m:
                table = (pa.ipc.open_file if kind == "file" else pa.ipc.open_stream)(m).read_all()
                assert table.num_rows == samples
            print(path)
"""
PYARROW = """
import sys
import pyarrow as pa
m = pa.memory_map(sys.argv[2])
table = (pa.ipc.open_file if sys.argv[1] == "file" else pa.ipc.open_stream)(m).read_all()
"""
ROWS = """
import sys, datasets
ds = datasets.Dataset.from_file(sys.argv[1])
for i in sys.argv[2:]:
    ds[int(i)]
"""


def library():
    for python in (os.environ.get("STOKER_PYTHON"), libraries(LIBRARIES_OF_ARROW)):
        if python and subprocess.run([python, "-c", "import datasets"], capture_output=True).returncode == 0:
            return python
    return None


def run(*args, ok=True):
    env = dict(os.environ, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", OMP_NUM_THREADS="1", HF_HOME=tempfile.gettempdir() + "/none")
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, env=env)
    assert (done.returncode == 0) == ok and done.returncode >= 0, (args, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout if ok else done.stderr


def read(path, samples, n, index, how="framework", decode="verify"):
    return [TOOL, "read", "arrow_stream", how, decode, "311", "0", str(index), path, "3", "uint8", str(samples), str(n)]


def job(data, **more):
    keys = {"framework": "pytorch", "dataset.format": "arrow_stream", "dataset.data_folder": data, "dataset.num_files_train": 4,
            "dataset.num_samples_per_file": 250, "dataset.record_length_bytes": 900, "reader.data_loader": "pytorch",
            "reader.batch_size": 10, "reader.read_threads": 2, "reader.sample_shuffle": "seed", "reader.decode": "verify",
            "train.epochs": 2, "train.computation_time": 0.0001, **more}
    return [f"{k}={v}" for k, v in keys.items()]


def they_read_ours(python, folder):
    for rows, samples, n in ((100, 250, 900), (1000, 250, 1), (7, 20, 4099), (100, 1, 0), (100, 100, 8)):
        data = folder / f"ours{rows}-{n}"
        spec = folder / "job.yaml"
        spec.write_text("framework: pytorch\n")
        keys = job(data, **{"dataset.arrow.batch_rows": rows, "dataset.num_files_train": 2, "dataset.num_samples_per_file": samples,
                            "dataset.record_dims": f"[{n}]"})
        if n:
            run(STOKER, "generate", spec, *keys)
            run(STOKER, "verify", spec, *keys)
            paths = sorted((data / "train").glob("*.arrow"))
            lines = [tuple(map(int, line.split())) for line in run(python, "-c", TELL, *paths).splitlines()]
            assert [(w, label) for w, _, label in lines] == [(n, (k * 331 + i) % 1000) for k in range(2) for i in range(samples)], lines[:3]
        path = folder / "one.arrow"
        run(TOOL, "write", "arrow_stream", path, 3, "uint8", samples, n)
        want = [sum((o * 131 + (o >> 8) * 7 + (o >> 16) * 13 + 3 * 17 + 5) & 255 for o in range(i * n, i * n + n)) for i in range(samples)]
        lines = [tuple(map(int, line.split())) for line in run(python, "-c", TELL, path).splitlines()]
        assert [(w, total) for w, total, _ in lines] == [(n, t) for t in want], lines[:3]


def we_read_theirs(python, folder):
    for samples, n in ((250, 900), (1, 5000), (1203, 64)):
        names = run(python, "-c", WRITE, folder, samples, n).split()
        assert len(names) == 5
        for name in names:
            path = folder / f"{name}.arrow"
            for index in {0, samples // 2, samples - 1}:
                run(*read(path, samples, n, index))
            said = run(*read(path, samples + 1, n, samples), ok=False)
            assert f"it has {samples} rows" in said, said
        run(TOOL, "write", "arrow_stream", folder / "mine.arrow", 3, "uint8", samples, n)
        mine, theirs = ((folder / name).stat().st_size for name in ("mine.arrow", "bytes.arrow"))
        assert abs(mine - theirs) <= 64 * (samples // 100 + 2), (mine, theirs)  # flatbuffers are laid out in many ways
    # a whole dataset of theirs under a run
    data = folder / "theirs"
    (data / "train").mkdir(parents=True)
    run(python, "-c", WRITE, folder, 250, 900)
    for i in range(4):
        os.link(folder / "image.arrow", data / f"train/img_{i}_of_4.arrow")
    run(STOKER, "run", folder / "job.yaml", "--output", folder / "out", *job(data, **{"reader.decode": "full"}))
    epochs = load(folder / "out")["training"]["epochs"]
    assert all(e["order_proved"] and e["samples"] == 1000 for e in epochs), epochs


def kinds_of_theirs(python, folder):
    """Every row that pyarrow wrote is found with its bytes, whatever form its column has."""
    for samples, n, rows in ((250, 12, 100), (40, 70000, 10)):
        paths = run(python, "-c", KINDS, folder, samples, n, rows).split()
        assert len(paths) == 39, paths
        for path in paths:
            for index in (0, samples - 1):
                run(*read(path, samples, n, index))
            for decode in ("none", "full"):
                run(*read(path, samples, n, 1, decode=decode))
            said = run(*read(path, samples + 1, n, samples), ok=False)
            assert f"it has {samples} rows" in said, said
            if shutil.which("strace") and "growing" in path and n == 70000:
                theirs = hints(folder, path, python, "-c", PYARROW, "file" if "-file" in path else "stream", path)
                ours = hints(folder, path, *read(path, samples, n, 1, decode="none"))
                assert theirs == ours and len(ours) > 4, (path, theirs, ours)
    # cut short anywhere, and with the marks of a file where there is none
    whole = (folder / "growing-lz4-file.arrow").read_bytes()
    path = folder / "cut.arrow"
    for n in (0, 5, 17, 18, 200, len(whole) // 2, len(whole) - 11, len(whole) - 1):
        path.write_bytes(whole[:n])
        said = run(*read(path, samples, 70000, 0), ok=False)
        assert said.count("\n") == 1, said


def residents(path):
    """The pages of a file that the page cache holds."""
    size = os.path.getsize(path)
    with open(path, "rb") as f, mmap.mmap(f.fileno(), size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as m:
        pages = (size + 4095) // 4096
        out = (ctypes.c_ubyte * pages)()
        at = ctypes.c_char.from_buffer(m)
        assert ctypes.CDLL(None, use_errno=True).mincore(ctypes.c_void_p(ctypes.addressof(at)), ctypes.c_size_t(size), out) == 0
        del at
        return [i for i, b in enumerate(out) if b & 1]


def cold(path):
    with open(path, "rb") as f:
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return not residents(path)


def hints(folder, path, *command):
    """What the system is told to read ahead of a file: [(offset, bytes)]."""
    log = folder / "log"
    run("strace", "-f", "--seccomp-bpf", "-y", "-e", "trace=mmap,madvise", "-o", log, "--", *command)
    begin, found = None, []
    for line in log.read_text().splitlines():
        m = re.search(r"mmap\(NULL, \d+, PROT_READ, \w+, \d+<(.*)>, 0\) += (0x\w+)", line)
        if m and m[1] == str(path):
            begin = int(m[2], 16)
        m = re.search(r"madvise\((0x\w+), (\d+), MADV_WILLNEED(?:\)| <unfinished)", line)
        if m and begin:
            found.append((int(m[1], 16) - begin, int(m[2])))
    return found


def same_pages(python, folder):
    """Also of one that others wrote."""
    samples, n = 300, 120_000
    for name, write in (("ours", True), ("theirs", False)):
        path = folder / f"{name}.arrow"
        if write:
            run(TOOL, "write", "arrow_stream", path, 3, "uint8", samples, n)
        else:
            run(python, "-c", WRITE.replace("COLUMNS.items()", "[('bytes', COLUMNS['bytes'])]"), folder, samples, n)
            os.replace(folder / "bytes.arrow", path)
        jobs = [[python, "-c", ROWS, path, samples - 1], read(path, samples, n, samples - 1, decode="none")]
        if shutil.which("strace"):
            theirs, ours = (hints(folder, path, *job) for job in jobs)
            assert theirs == ours and len(theirs) == 7, (theirs, ours)
        else:
            left_out("what is asked to be read ahead: strace is not installed")
        # what is asked to be read ahead, a busy system may leave out in part
        for _ in range(4):
            pages = []
            for job in jobs:
                if not cold(path):
                    left_out("pages: the files of this file system stay in the page cache")
                    return
                run(*job)
                pages.append(residents(path))
            if pages[0] == pages[1] and pages[0]:
                break
        else:
            raise AssertionError((name, *map(len, pages)))
    print("the same pages are brought in")


def main():
    python = library()
    if not python:
        skip("no Python here has datasets (tools/setup.sh heavy; STOKER_PYTHON names another one)")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as tmp:
        for case in (they_read_ours, we_read_theirs, kinds_of_theirs, same_pages):
            folder = pathlib.Path(tmp, case.__name__)
            folder.mkdir()
            (folder / "job.yaml").write_text("framework: pytorch\n")
            case(python, folder)
            print(case.__name__, flush=True)


main()
