"""AU and times of epochs beside those of the real DLIO: the same files, command line and store.

    against_dlio.py [STOKER] [--costs PROFILE] [--rounds N] [--only WORD[,WORD...]] [--out FILE] [--tensorflow PROFILE]

With --tensorflow the rows are of DLIO's tf.data loader. DLIO_COMMAND is the program to compare with (one that takes DLIO's command line); without it, the bench is skipped.
Both sides alternate; each figure is a median over the rounds. Stores of known speed need root."""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from quiet import first, quietly  # noqa: E402
from stores import Store, Unavailable  # noqa: E402
from util import skip  # noqa: E402

PEER = os.environ.get("DLIO_COMMAND", "")
MIB, KB = 1 << 20, 150528

WARM = dict(kind="memory")


def calls(mib_s=0, **more):
    return dict(kind="calls", bytes_s=mib_s * MIB, **more)


def disk(mib_s):
    return dict(kind="disk", mib_s=mib_s)


def row(name, fmt, files, size, batch, workers, ranks, step_ms, store, epochs=3, **keys):
    return dict(name=name, format=fmt, files=files, size=size, batch=batch, workers=workers, ranks=ranks,
                step=step_ms / 1e3, store=store, epochs=epochs, keys=keys)


ROWS = [
    # storage-bound
    row("npz 1x1 20 ms, calls 60", "npz", 96, MIB, 4, 1, 1, 20, calls(60)),
    row("npz 1x2 20 ms, calls 100", "npz", 128, MIB, 4, 2, 1, 20, calls(100)),
    row("npz 1x4 20 ms, calls 60", "npz", 96, MIB, 4, 4, 1, 20, calls(60)),
    row("npz 1x0 20 ms, calls 200", "npz", 96, MIB, 4, 0, 1, 20, calls(200)),
    row("npy 1x1 20 ms, calls 80", "npy", 96, MIB, 4, 1, 1, 20, calls(80)),
    row("hdf5 1x1 20 ms, calls 60", "hdf5", 96, MIB, 4, 1, 1, 20, calls(60)),
    row("png 1x2 20 ms, calls 60", "png", 96, MIB, 4, 2, 1, 20, calls(60)),
    row("jpeg 1x2 20 ms, calls 60", "jpeg", 96, MIB, 4, 2, 1, 20, calls(60)),
    row("indexed 1x1 20 ms, calls 60", "indexed_binary", 96, MIB, 4, 1, 1, 20, calls(60)),
    row("npz 1x1 20 ms, disk 60", "npz", 96, MIB, 4, 1, 1, 20, disk(60)),
    row("npz 1x4 20 ms, disk 60", "npz", 96, MIB, 4, 4, 1, 20, disk(60)),
    row("hdf5 1x2 20 ms, disk 80", "hdf5", 96, MIB, 4, 2, 1, 20, disk(80)),
    row("png 1x1 20 ms, disk 60", "png", 96, MIB, 4, 1, 1, 20, disk(60)),
    row("npy 2x2 30 ms, disk 100", "npy", 96, MIB, 4, 2, 2, 30, disk(100)),
    row("npz 2x1 30 ms, calls 100", "npz", 96, MIB, 4, 1, 2, 30, calls(100)),
    row("npz 4x1 60 ms, calls 120", "npz", 128, MIB, 4, 1, 4, 60, calls(120)),
    # latency of opens
    row("npz 150 KB 1x1 30 ms, open 4 ms", "npz", 384, KB, 8, 1, 1, 30, calls(open_us=4000)),
    row("hdf5 150 KB 1x2 20 ms, open 6 ms", "hdf5", 384, KB, 8, 2, 1, 20, calls(open_us=6000)),
    # worker-bound
    row("npz 1x2 20 ms, preprocess 15 ms", "npz", 96, MIB, 4, 2, 1, 20, WARM, reader__preprocess_time=0.015),
    row("npz 1x4 20 ms, preprocess 20 ms", "npz", 96, MIB, 4, 4, 1, 20, WARM, reader__preprocess_time=0.02),
    row("png 1x1 20 ms", "png", 96, MIB, 4, 1, 1, 20, WARM),
    row("jpeg 1x1 20 ms", "jpeg", 96, MIB, 4, 1, 1, 20, WARM),
    row("csv 16 KiB 1x2 50 ms", "csv", 16, 16384, 2, 2, 1, 50, WARM, 2),
    row("csv 4 KiB 1x1 100 ms", "csv", 32, 4096, 2, 1, 1, 100, WARM, 2),
    row("npz 1x1 5 ms", "npz", 256, MIB, 4, 1, 1, 5, WARM),
    row("hdf5 150 KB 1x1 2 ms", "hdf5", 1024, KB, 8, 1, 1, 2, WARM),
    # no workers
    row("npz 1x0 20 ms", "npz", 128, MIB, 4, 0, 1, 20, WARM),
    row("png 1x0 50 ms", "png", 96, MIB, 4, 0, 1, 50, WARM),
    row("hdf5 1x0 20 ms", "hdf5", 128, MIB, 4, 0, 1, 20, WARM),
    row("npz 2x0 20 ms", "npz", 128, MIB, 4, 0, 2, 20, WARM),
    # compute-bound
    row("npz 1x4 200 ms", "npz", 48, MIB, 4, 4, 1, 200, WARM, 2),
    row("png 1x2 50 ms", "png", 96, MIB, 4, 2, 1, 50, WARM),
    row("jpeg 1x2 50 ms", "jpeg", 96, MIB, 4, 2, 1, 50, WARM),
    row("mmap 1x1 20 ms", "mmap_indexed_binary", 128, MIB, 4, 1, 1, 20, WARM),
    row("npz 2x2 100 ms", "npz", 96, MIB, 4, 2, 2, 100, WARM, 2),
    # start-up-bound: few steps
    row("npz 1x4 50 ms, 8 steps", "npz", 32, MIB, 4, 4, 1, 50, WARM),
    row("npz 4x2 100 ms, 2 steps", "npz", 16, MIB, 2, 2, 4, 100, WARM),
    row("npz 8 MiB 1x2 50 ms", "npz", 24, 8 * MIB, 1, 2, 1, 50, WARM),
    row("npz 4 a file 1x1 50 ms", "npz", 16, MIB, 4, 1, 1, 50, WARM, dataset__num_samples_per_file=4),
]

TF = dict(framework="tensorflow", reader__data_loader="tensorflow")
TF_ROWS = [
    row("tensorflow 1x2 40 ms", "tfrecord", 64, 500000, 4, 2, 1, 40, WARM, reader__prefetch_size=2, **TF),
    row("tensorflow 1x1 20 ms", "tfrecord", 96, MIB, 4, 1, 1, 20, WARM, reader__prefetch_size=4, **TF),
    row("tensorflow 1x2 20 ms, calls 60", "tfrecord", 96, MIB, 4, 2, 1, 20, calls(60), reader__prefetch_size=2, **TF),
    row("tensorflow 1x4 20 ms, disk 60", "tfrecord", 96, MIB, 4, 4, 1, 20, disk(60), reader__prefetch_size=2,
        reader__sample_shuffle="seed", reader__shuffle_size=16, **TF),
]


def overrides(r, folder, out):
    keys = {
        "framework": "pytorch", "dataset.data_folder": folder, "dataset.format": r["format"],
        "dataset.num_files_train": r["files"], "dataset.num_files_eval": 0, "dataset.num_subfolders_train": 0,
        "dataset.num_subfolders_eval": 0, "dataset.record_length_bytes": r["size"], "reader.data_loader": "pytorch",
        "reader.batch_size": r["batch"], "reader.read_threads": r["workers"], "train.epochs": r["epochs"],
        "train.computation_time": r["step"], "workflow.evaluation": "False", "workflow.checkpoint": "False",
        "workflow.train": "True", "output.folder": out,
    }
    keys.update({k.replace("__", "."): v for k, v in r["keys"].items()})
    return ["workload=default", *[f"++workload.{k}={v}" for k, v in keys.items()], f"++hydra.run.dir={out}"]


def call(argv, limit=150, **kw):
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=limit, **kw)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, argv))}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done


def results(out, ranks):
    """AU by DLIO's definition for each epoch, and the times of the blocks: what both programs write."""
    au = json.loads((out / "summary.json").read_text())["metric"]["train_au_percentage"]
    walls = []
    for rank in range(ranks):
        epochs = json.loads((out / f"{rank}_per_epoch_stats.json").read_text())
        walls.append([seconds(e["block1"]) for e in epochs.values()])
    return dict(au=au, wall=[max(w) for w in zip(*walls)])


def seconds(block):
    begin, end = (datetime.datetime.fromisoformat(block[k]) for k in ("start", "end"))
    return (end - begin).total_seconds()


def real(r, store, out):
    shutil.rmtree(out, ignore_errors=True)
    store.evict()
    launch = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", r["ranks"]] if r["ranks"] > 1 else []
    call([*launch, PEER, *overrides(r, store.data, out)], **store.surround())
    return results(out, r["ranks"])


def ours(stoker, r, store, out, *more):
    shutil.rmtree(out, ignore_errors=True)
    store.evict()
    call([stoker, "run", "-q", *overrides(r, store.data, out), "-n", r["ranks"], "compat.dlio=true", *more],
         **store.surround())
    return results(out, r["ranks"])


def measure(stoker, r, store, tmp, a):
    call([stoker, "generate", "-q", *overrides(r, store.data, tmp / "made")])
    sides = dict(dlio=[], ours=[], plain=[])
    profile = a.tensorflow or a.costs
    costs = [f"framework.costs={profile}"] if profile else []
    for i in range(a.rounds):
        for side in ("dlio", "ours") if i % 2 == 0 else ("ours", "dlio"):
            out = tmp / f"{side}{i}"
            if side == "dlio":
                sides[side].append(quietly(lambda: real(r, store, out)))
            else:
                sides[side].append(quietly(lambda: ours(stoker, r, store, out, *costs)))
        if i == 0 and profile:
            sides["plain"].append(ours(stoker, r, store, tmp / "plain", "framework.costs=none"))
    if a.out:
        with open(a.out, "a") as f:
            f.write(json.dumps(dict(name=r["name"], **sides)) + "\n")
    return sides


def middle(runs):
    """Medians over the rounds: AU of the run, AU of the first and of the later epochs, times of both."""
    med = statistics.median
    return dict(au=med(statistics.mean(x["au"]) for x in runs), first_au=med(x["au"][0] for x in runs),
                first=med(x["wall"][0] for x in runs), later=med(w for x in runs for w in x["wall"][1:]))


def show(name, sides):
    d, o = middle(sides["dlio"]), middle(sides["ours"])
    plain = f"{middle(sides['plain'])['au']:6.1f}" if sides["plain"] else "     –"
    print(f"{name:34} AU {d['au']:5.1f} {o['au']:5.1f} ({o['au'] - d['au']:+5.1f}) plain {plain}  "
          f"first {d['first']:.3f} {o['first']:.3f} ({100 * (o['first'] / d['first'] - 1):+5.1f} %)  "
          f"later {d['later']:.3f} {o['later']:.3f} ({100 * (o['later'] / d['later'] - 1):+5.1f} %)", flush=True)
    return abs(o["au"] - d["au"]), abs(100 * (o["later"] / d["later"] - 1))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("stoker", nargs="?", default="build/stoker")
    a.add_argument("--costs", default="")
    a.add_argument("--tensorflow", default="")
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--only", default="")
    a.add_argument("--out", default="")
    a.add_argument("--list", action="store_true")
    a = a.parse_args()
    rows = [r for r in (TF_ROWS if a.tensorflow else ROWS) if not a.only or any(w in r["name"] for w in a.only.split(";"))]
    if a.list:
        print("\n".join(r["name"] for r in rows))
        return
    if not PEER or not os.access(PEER, os.X_OK):
        skip("DLIO_COMMAND does not name a program")
    misses = []
    first()
    for r in rows:
        try:
            size = r["files"] * r["size"] * r["keys"].get("dataset__num_samples_per_file", 1)
            with tempfile.TemporaryDirectory() as tmp, Store(r["store"], size) as store:
                misses.append(show(r["name"], measure(os.path.abspath(a.stoker), r, store, pathlib.Path(tmp), a)))
        except Unavailable as e:
            print(f"left out: {r['name']}: {e}")
        except RuntimeError as e:
            print(f"failed: {r['name']}: {e}")
    if misses:
        n = len(misses)
        print(f"{n} configurations: AU within 2 points in {sum(m[0] <= 2 for m in misses)}, within 4 in "
              f"{sum(m[0] <= 4 for m in misses)}; later epochs within 3 % in {sum(m[1] <= 3 for m in misses)}")


if __name__ == "__main__":
    main()
