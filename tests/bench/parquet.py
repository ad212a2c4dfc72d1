"""Figures, not tests: what Parquet files cost beside plain loops of read(2) and write(2) over as many bytes.

    python3 tests/bench/parquet.py build/stoker

Files lie in memory (/dev/shm, or TMPDIR). Reading: one rank without workers and DLIO's iterator with one, of
rows in groups of 5 MB, the program and the loop in turn; the ratios are loop's time / program's, of whole
epochs: of wall time and of processor time. Generation: the processor time of `generate` beside that of the writing loop. Medians of RUNS turns.
"""
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

STOKER = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/stoker")
RUNS = int(os.environ.get("RUNS", 5))
EPOCHS = int(os.environ.get("EPOCHS", 4))
FILES, ROWS, GROUP, WIDTH = 8, 65536, 6144, 200
PIECE = 2 << 20
COLUMNS = ", ".join(f"{{name: f{i}, dtype: float32}}" for i in range(WIDTH))
KEYS = ["framework=pytorch", "dataset.format=parquet", f"dataset.num_files_train={FILES}", "dataset.num_files_eval=0",
        "workflow.evaluation=false", f"dataset.num_samples_per_file={ROWS}", f"dataset.parquet.row_group_size={GROUP}",
        f"dataset.parquet.columns=[{COLUMNS}]"]
READS = {"native": ["reader.read_threads=0", "reader.access=native"],
         "native, row_groups": ["reader.read_threads=1", "reader.access=native", "reader.data_loader=row_groups"],
         "s3dlio, row_groups": ["reader.read_threads=1", "reader.parquet_requests=s3dlio", "reader.data_loader=row_groups"]}


def spent():
    """Processor time of the children and of this process."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def timed(work):
    wall, cpu = time.monotonic(), spent()
    work()
    return time.monotonic() - wall, spent() - cpu


def read_all(files):
    buffer = [bytearray(PIECE)]
    for name in files:
        fd = os.open(name, os.O_RDONLY)
        while os.readv(fd, buffer):
            pass
        os.close(fd)


def write_all(files, folder):
    piece = os.urandom(PIECE)
    for i, name in enumerate(files):
        left = os.path.getsize(name)
        fd = os.open(f"{folder}/{i}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        while left > 0:
            left -= os.write(fd, piece[:left] if left < PIECE else piece)
        os.close(fd)


def main():
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as tmp:
        made = []
        run = lambda *a: subprocess.run([STOKER, *a], check=True, capture_output=True)  # noqa: E731
        for i in range(3):
            made.append(timed(lambda: run("generate", "default", *KEYS, f"dataset.data_folder={tmp}/d{i}"))[1])
            if i < 2:
                subprocess.run(["rm", "-r", f"{tmp}/d{i}"], check=True)
        files = [os.path.join(d, f) for d, _, names in os.walk(f"{tmp}/d2/train") for f in names if f.endswith(".parquet")]
        os.mkdir(f"{tmp}/w")
        wrote = [timed(lambda: write_all(files, f"{tmp}/w"))[1] for _ in range(3)]
        subprocess.run(["rm", "-r", f"{tmp}/w"], check=True)
        size = sum(os.path.getsize(f) for f in files)
        print(f"{len(files)} files, {size / 1e6:.0f} MB; generation: {statistics.median(made) / size * 1e9:.2f} s of processors a GB, "
              f"{statistics.median(made) / statistics.median(wrote):.2f} of write's")
        for name, keys in READS.items():
            ratios = []
            for _ in range(RUNS):
                loop = [x / EPOCHS for x in timed(lambda: [read_all(files) for _ in range(EPOCHS)])]
                run("run", "default", *KEYS, f"dataset.data_folder={tmp}/d2", "workflow.generate_data=false", f"train.epochs={EPOCHS}", *keys,
                    "reader.decode=none", "reader.batch_size=2048", "train.computation_time=0", "dataset.verify_samples=0",
                    "run.probe=false", f"hydra.run.dir={tmp}/out")
                epochs = json.load(open(f"{tmp}/out/result.json"))["training"]["epochs"]
                ratios.append([x / statistics.mean(e[part] for e in epochs) for x, part in zip(loop, ("wall_s", "cpu_s"))])
            wall, cpu = (statistics.median(r[i] for r in ratios) for i in (0, 1))
            print(f"{name}: {wall:.2f} of a plain loop's rate, {cpu:.2f} by processor time", flush=True)


main()
