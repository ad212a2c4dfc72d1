"""Figures, not tests: what a byte costs in each format, beside plain loops and the decoding library alone.

    python3 tests/bench/formats.py build/stoker [FORMAT...]

Files lie in memory (/dev/shm, or TMPDIR) and in the cache; one rank reads them, without workers. For each
way of reading, the program, a plain loop of read(2) over the same files (a C program) and, for full
decoding, the decoding library alone on bytes in memory take turns, RUNS times, each with EPOCHS passes;
figures are medians, and ratios medians of the ratios within a turn. GB are 10^9 bytes of the files.
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
STOKER = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/stoker")
os.environ["STOKER"] = STOKER
import library  # noqa: E402
from util import tiny  # noqa: E402

TOOL = os.path.join(os.environ.get("STOKER_TOOLS", os.path.join(os.path.dirname(STOKER), "tests")), "decode_tool")
RUNS = int(os.environ.get("RUNS", 5))
EPOCHS = int(os.environ.get("EPOCHS", 3))
MODES = (("native", "none"), ("framework", "none"), ("framework", "full"))
BUFFER = 1 << 20
# What is quoted for DLIO 2.0 with full decoding, of one core: npz records of 64 to 150 MB, and of 150 KB.
DLIO_GB_S, DLIO_SMALL_SAMPLES_S = 1.0, 320
GZIP = dict(dataset__compression="gzip", dataset__compression_level=4)


def chunk(n):
    """Chunks of a record of n bytes: at least four, and none above the 1 MiB of the library's cache."""
    side = int(n ** 0.5)
    each = -(-side // max(2, -(-side // 1024)))
    return dict(dataset__hdf5__chunk_dims=f"[1,{each},{each}]")


SMALL, MIDDLE, LARGE = (150528, 1000), (16 << 20, 12), (96 << 20, 3)
ALL = (SMALL, MIDDLE, LARGE)
# shards of samples
SHARDS, SAMPLES = ((4096, 256), (150528, 10), (4 << 20, 1)), dict(dataset__num_samples_per_file=100)
# name, format, record sizes with numbers of files, keys of the workload
FORMATS = (
    ("npz", "npz", ALL, lambda n: {}),
    ("npz zip", "npz", ALL, lambda n: dict(dataset__compression="zip")),
    ("npy", "npy", ALL, lambda n: {}),
    ("hdf5", "hdf5", ALL, lambda n: {}),
    ("hdf5 chunked", "hdf5", ALL, chunk),
    ("hdf5 gzip", "hdf5", ALL, lambda n: {**chunk(n), **GZIP}),
    ("tfrecord", "tfrecord", ALL, lambda n: {}),
    ("png", "png", ALL, lambda n: {}),
    ("jpeg", "jpeg", ((150528, 500), (16 << 20, 4)), lambda n: {}),
    ("csv", "csv", ((150528, 50), (1 << 20, 6)), lambda n: {}),
    ("indexed_binary", "indexed_binary", ALL, lambda n: {}),
    ("mmap_indexed_binary", "mmap_indexed_binary", ALL, lambda n: {}),
    ("webdataset", "webdataset", SHARDS, lambda n: SAMPLES),
    ("mds", "mds", SHARDS, lambda n: SAMPLES),
    ("litdata", "litdata", SHARDS, lambda n: SAMPLES),
    ("parquet", "parquet", SHARDS, lambda n: SAMPLES),
)


def tool(lines, *argv, passes=1):
    """What the tool prints, bytes and then seconds, for one pass."""
    text = (lines + "\n") * passes
    done = subprocess.run([TOOL, *map(str, argv)], input=text, capture_output=True, text=True, check=True)
    return [float(x) / passes for x in done.stdout.split()]


def run(data, out, base, access, decode):
    """Wall and CPU seconds of an epoch."""
    argv = tiny(data, out, workflow__generate_data="false", reader__access=access, reader__decode=decode,
                train__epochs=EPOCHS, **base)
    subprocess.run([STOKER, "run", *map(str, argv)], check=True, stdout=subprocess.DEVNULL)
    epochs = json.loads((out / "result.json").read_text())["training"]["epochs"]
    return tuple(sum(x[part] for x in epochs) / EPOCHS for part in ("wall_s", "cpu_s"))


def generate(data, base):
    argv = tiny(data, None, **base)
    begin, before = time.perf_counter(), os.times()
    subprocess.run([STOKER, "generate", *map(str, argv)], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return (time.perf_counter() - begin,
            after.children_user - before.children_user + after.children_system - before.children_system)


def median(rows, part):
    return statistics.median(r[part] for r in rows)


def ratio(ours, theirs, part):
    return statistics.median(a[part] / b[part] for a, b in zip(ours, theirs))


def decoding(fmt, names, work):
    """One turn of reading whole files and decoding in memory: CPU seconds of each."""
    if work is not None:
        _, _, read, _, decode = tool(work, "decode", passes=EPOCHS)
        return read, decode
    # pandas takes minutes for a row of a million numbers; one file tells what the others would take
    both = library.parse_csv(names[:1]) if fmt == "csv" and os.path.getsize(names[0]) < 1 << 20 else None
    return both and (both[0][1] * len(names), both[1][1] * len(names))


def reading(name, fmt, data, out, base, names, length):
    total, lines = sum(map(os.path.getsize, names)), "\n".join(names)
    work = library.work_list(fmt, names)
    cost = {}
    for access, decode in MODES:
        ours, plain, library_alone = [], [], []
        for _ in range(RUNS):
            ours.append(run(data, out, base, access, decode))
            plain.append(tool(lines, "read", BUFFER, passes=EPOCHS)[1:])
            if decode == "full":
                alone = decoding(fmt, names, work)
                library_alone += [alone] if alone else []
        gb, cost[access, decode] = total / 1e9, median(ours, 1)
        text = (f"{name:20} {length:10} {access + '/' + decode:15} {gb / median(ours, 0):6.2f} "
                f"{median(ours, 1) / gb:7.3f}  {gb / median(plain, 0):6.2f} {median(plain, 1) / gb:7.3f} "
                f"{ratio(ours, plain, 0):7.2f} {ratio(ours, plain, 1):7.2f}")
        if library_alone:
            alone = statistics.median(sum(x) for x in library_alone)
            with_requests = cost["framework", "none"] + median(library_alone, 1)
            text += (f"  {alone / gb:7.3f} {statistics.median(a[1] / sum(b) for a, b in zip(ours, library_alone)):7.2f} "
                     f"{with_requests / gb:7.3f} {cost[access, decode] / with_requests:7.2f}")
        print(text, flush=True)
        if decode == "full":
            yield ours


def beside_python(fmt, names, length, ours):
    """The real library in Python on one core, and what is quoted for DLIO."""
    seconds = median(ours, 1)
    rate, text = len(names) / seconds, []
    theirs = [library.loop(fmt, names) for _ in range(3)] if fmt != "csv" else [None]
    if theirs[0]:
        python = len(names) / median(theirs, 1)
        text.append(f"the library in Python {python:.0f} (ours is {rate / python:.1f} times that)")
    if fmt == "npz" and length == SMALL[0]:
        text.append(f"DLIO as quoted {DLIO_SMALL_SAMPLES_S} ({rate / DLIO_SMALL_SAMPLES_S:.0f} times, 30 wanted)")
    if fmt == "npz" and length == LARGE[0]:
        dlio = DLIO_GB_S * 1e9 / length
        text.append(f"DLIO as quoted {dlio:.1f} ({rate / dlio:.1f} times, 5 wanted)")
    if text:
        print(f"{'':20} {'':10} samples/s of a core, framework/full: {rate:.0f}; {'; '.join(text)}", flush=True)


def generation(data, out, base):
    """Generates RUNS times beside a plain loop of write(2); leaves the last dataset. What it costs to start
    the program is taken off."""
    ours, plain = [], []
    for i in range(RUNS):
        shutil.rmtree(data, ignore_errors=True)
        ours.append(generate(data, base))
        names = sorted(str(p) for p in (data / "train").iterdir() if p.suffix != ".json")
        copies = out / "plain"
        copies.mkdir(parents=True)
        each = sum(map(os.path.getsize, names)) // len(names)
        plain.append(tool("\n".join(str(copies / str(k)) for k in range(len(names))), "write", BUFFER, each)[1:])
        shutil.rmtree(copies)
    start = [generate(data, base) for _ in range(3)]
    return [tuple(max(a - median(start, i), 1e-6) for i, a in enumerate(o)) for o in ours], plain


def one(name, fmt, length, files, keys, tmp):
    data, out = tmp / "data", tmp / "out"
    base = dict(fmt=fmt, files=files, dataset__record_length_bytes=length, reader__batch_size=1,
                reader__read_threads=0, train__computation_time=0, **keys)
    ours, plain = generation(data, out, base)
    names = sorted(str(p) for p in (data / "train").iterdir() if not p.name.endswith((".idx", ".json")))
    gb = sum(map(os.path.getsize, names)) / 1e9
    print(f"{name:20} {length:10} {'generate':15} {gb / median(ours, 0):6.2f} {median(ours, 1) / gb:7.3f}  "
          f"{gb / median(plain, 0):6.2f} {median(plain, 1) / gb:7.3f} {ratio(ours, plain, 0):7.2f} "
          f"{ratio(ours, plain, 1):7.2f}", flush=True)
    for full in reading(name, fmt, data, out, base, names, length):
        beside_python(fmt, names, length, full)
    shutil.rmtree(data)


def main(only=()):
    if not os.path.exists(TOOL):
        raise SystemExit(f"'{TOOL}' is not there: build the tests")
    print("ours and plain: GB/s of wall time, CPU s per GB; ratios ours/plain of wall time and of CPU time; then, "
          "for full decoding,\nCPU s per GB and the ratio to them: the decoding library alone (csv: pandas) with one "
          "read of each file, and with the\nframework's requests (framework/none). Wanted: native/none at most 1.1 x "
          "plain from 1 MiB on; framework/full at most\n1.1 x the library and the reads.")
    print(f"{'format':20} {'record':>10} {'':15} {'ours':>6} {'CPU/GB':>7}  {'plain':>6} {'CPU/GB':>7} {'wall x':>7} "
          f"{'CPU x':>7}  {'library':>7} {'CPU x':>7} "
          f"{'+reqs':>7} {'CPU x':>7}")
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/dev/shm")) as tmp:
        for name, fmt, sizes, keys in FORMATS:
            if only and fmt not in only and name not in only:
                continue
            for length, files in sizes:
                one(name, fmt, length, files, keys(length), pathlib.Path(tmp))


if __name__ == "__main__":
    main(sys.argv[2:])
