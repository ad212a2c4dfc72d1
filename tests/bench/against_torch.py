"""Times of epochs beside those of a real torch.utils.data.DataLoader: the same files, order, batches and workers, on
the same store.

    against_torch.py [STOKER] [--costs PROFILE] [--rounds N] [--only WORD] [--no-torch]

Both sides alternate; each figure is a median over the rounds. Without PyTorch, numpy, h5py or Pillow it is skipped
(STOKER_PYTHON names another Python). Rows on a held disk and a slow store need root."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from quiet import first, quietly  # noqa: E402
from stores import Store, Unavailable  # noqa: E402
from util import skip  # noqa: E402

PYTHON = os.environ.get("STOKER_PYTHON", "/usr/bin/python3")
MIB = 1 << 20

# store: what every call or byte costs; epochs: the first and those after it are told apart
COLUMNS = ("name", "format", "files", "size", "batch", "workers", "ranks", "store")
ROWS = [dict(zip(COLUMNS, row)) for row in [
    ("npz, warm", "npz", 64, MIB, 4, 1, 1, dict(kind="memory")),
    ("npz, slow store, 2 workers", "npz", 96, MIB, 4, 2, 1, dict(kind="calls", bytes_s=100e6, open_us=500)),
    ("npz, disk of 80 MiB/s, 4 workers", "npz", 128, MIB, 4, 4, 1, dict(kind="disk", mib_s=80)),
    ("npz, inline", "npz", 64, MIB, 4, 0, 1, dict(kind="memory")),
    ("npz, 8 MiB, warm", "npz", 24, 8 * MIB, 1, 2, 1, dict(kind="memory")),
    ("npz, 150 KB, inline", "npz", 640, 150528, 16, 0, 1, dict(kind="memory")),
    ("png, warm, 2 workers", "png", 96, MIB, 4, 2, 1, dict(kind="memory")),
    ("png, slow store, 1 worker", "png", 96, MIB, 4, 1, 1, dict(kind="calls", bytes_s=60e6)),
    ("png, inline", "png", 64, MIB, 4, 0, 1, dict(kind="memory")),
    ("hdf5, warm, 1 worker", "hdf5", 128, MIB, 4, 1, 1, dict(kind="memory")),
    ("hdf5, slow store, 2 workers", "hdf5", 96, MIB, 4, 2, 1, dict(kind="calls", bytes_s=100e6, read_us=500)),
    ("hdf5, disk of 80 MiB/s, 2 workers", "hdf5", 96, MIB, 4, 2, 1, dict(kind="disk", mib_s=80)),
    ("npz, 2 ranks of 2 workers", "npz", 128, MIB, 4, 2, 2, dict(kind="calls", bytes_s=120e6)),
]]
STEP, EPOCHS, PREFETCH = 0.03, 4, 2


def python_has(*modules):
    return subprocess.run([PYTHON, "-c", "import " + ",".join(modules)], capture_output=True).returncode == 0


def overrides(row, folder):
    keys = {
        "framework": "pytorch", "dataset.data_folder": folder, "dataset.format": row["format"],
        "dataset.num_files_train": row["files"], "dataset.num_files_eval": 0, "dataset.num_subfolders_train": 0,
        "dataset.record_length_bytes": row["size"], "reader.batch_size": row["batch"],
        "reader.read_threads": row["workers"], "reader.prefetch_size": PREFETCH * row["workers"],
        "reader.persistent_workers": "true", "reader.transport": "shared_memory" if row["workers"] else "none",
        "reader.sample_shuffle": "off", "reader.file_shuffle": "off", "train.epochs": EPOCHS,
        "train.computation_time": STEP, "workflow.evaluation": "false", "workflow.checkpoint": "false",
    }
    return ["-q", *[f"{k}={v}" for k, v in keys.items()]]


def check_run(argv, **kw):
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=240, **kw)
    if done.returncode:
        raise RuntimeError(f"{argv}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def ours(stoker, row, store, tmp, costs):
    out = tmp / "out"
    more = ["workflow.generate_data=false", f"framework.costs={costs}"] if costs else ["workflow.generate_data=false"]
    store.evict()
    check_run([stoker, "run", "default", "-n", row["ranks"], "-o", out, *overrides(row, store.data), *more],
              **store.surround())
    with open(out / "result.json") as f:
        result = json.load(f)
    return [e["wall_s"] for e in result["training"]["epochs"]]


def real(row, store, tmp):
    tasks = []
    meeting = tmp / "meeting"
    meeting.write_bytes(b"\0" * 4096)
    store.evict()
    for rank in range(row["ranks"]):
        task = dict(format=row["format"], folder=str(store.data / "train"), ranks=row["ranks"], rank=rank,
                    workers=row["workers"], prefetch=PREFETCH, persistent=True, batch=row["batch"], step=STEP,
                    epochs=EPOCHS, meeting=str(meeting))
        tasks.append(subprocess.Popen([PYTHON, HERE / "torch_loop.py", json.dumps(task)], stdout=subprocess.PIPE,
                                      text=True, **store.surround()))
    told = [json.loads(t.communicate(timeout=240)[0]) for t in tasks]
    return [max(t["epochs"][e]["wall"] for t in told) for e in range(EPOCHS)], told


def off(value, true):
    return 100 * (value / true - 1)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("stoker", nargs="?", default="build/stoker")
    a.add_argument("--costs", default="")
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--only", default="")
    a.add_argument("--raw", default="")
    a = a.parse_args()
    if not python_has("torch", "numpy"):
        skip(f"{PYTHON} has no torch")
    stoker = os.path.abspath(a.stoker)
    first()
    for row in ROWS:
        if a.only and a.only not in row["name"]:
            continue
        needs = {"png": ["PIL"], "hdf5": ["h5py"]}.get(row["format"], [])
        if not python_has("torch", *needs):
            print(f"left out: {row['name']}: {PYTHON} has no {needs}")
            continue
        try:
            with tempfile.TemporaryDirectory() as tmp, Store(row["store"], 2 * row["files"] * row["size"]) as store:
                measure(stoker, row, store, pathlib.Path(tmp), a)
        except Unavailable as e:
            print(f"left out: {row['name']}: {e}")


def measure(stoker, row, store, tmp, a):
    check_run([stoker, "generate", "default", *overrides(row, store.data)])
    sides = dict(torch=[], ours=[], plain=[])
    for r in range(a.rounds):
        walls, told = quietly(lambda: real(row, store, tmp))
        sides["torch"].append(walls)
        if a.raw:
            with open(a.raw, "a") as f:
                f.write(json.dumps(dict(name=row["name"], told=told)) + "\n")
        if a.costs:
            sides["ours"].append(quietly(lambda: ours(stoker, row, store, tmp, a.costs)))
        if r == 0:
            sides["plain"].append(quietly(lambda: ours(stoker, row, store, tmp, None)))
    first = {k: statistics.median(w[0] for w in v) for k, v in sides.items() if v}
    later = {k: statistics.median(x for w in v for x in w[1:]) for k, v in sides.items() if v}
    words = [f"{row['name']:34} torch {first['torch']:.3f} {later['torch']:.3f}"]
    for k in ("ours", "plain"):
        if k in first:
            words.append(f"{k} {first[k]:.3f} {later[k]:.3f} ({off(first[k], first['torch']):+.1f} %, "
                         f"{off(later[k], later['torch']):+.1f} %)")
    print("  ".join(words), flush=True)


if __name__ == "__main__":
    main()
