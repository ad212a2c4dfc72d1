"""Many small configurations beside the real DLIO, on files in memory, in pieces that can be repeated until all is done.

    many_against_dlio.py STOKER OUT [--costs PROFILE] [--rounds N] [--seconds N] [--only WORD[;WORD...]] [--table]

DLIO_COMMAND is the program to compare with. OUT gets a line of JSON for each run of a pair; what is there already is not
run again. Ends after about --seconds, with status 3 while more is left. --table shows what OUT has: medians over the
rounds of AU by DLIO's definition, of the first epoch's time and of the later ones', ours beside DLIO's."""
import argparse
import collections
import json
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from against_dlio import KB, MIB, PEER, call, overrides, results, row, shutil  # noqa: E402

K = 1 << 10


def one(name, fmt, files, size, batch, workers, ms, epochs=3, ranks=1, **keys):
    return row(name, fmt, files, size, batch, workers, ranks, ms, None, epochs, **keys)


def evaluated(files=24, ms=10, batch=1):
    return dict(workflow__evaluation="True", dataset__num_files_eval=files, evaluation__eval_time=ms / 1e3,
                reader__batch_size_eval=batch)


def saved(**more):
    return dict(workflow__checkpoint="True", model__model_size_bytes=100000, **more)


def drawn(kind, **more):
    return {"train__computation_time": "{" + ",".join(f"{k}:{v}" for k, v in dict(type=kind, **more).items()) + "}"}


ROWS = [
    one("npz 64K b1 w1 10ms", "npz", 80, 64 * K, 1, 1, 10),
    one("npz 64K b1 w0 10ms", "npz", 80, 64 * K, 1, 0, 10),
    one("npz 256K b8 w2 40ms", "npz", 160, 256 * K, 8, 2, 40),
    one("npz 1K b32 w1 20ms", "npz", 640, K, 32, 1, 20),
    one("npz 4M b2 w4 60ms", "npz", 32, 4 * MIB, 2, 4, 60),
    one("npz 100M b1 w1 300ms", "npz", 6, 100 * MIB, 1, 1, 300),
    one("npz 100M b1 w2 250ms", "npz", 6, 100 * MIB, 1, 2, 250),
    one("npz 256K b4 w2 30ms 1 epoch", "npz", 120, 256 * K, 4, 2, 30, 1),
    one("npy 64K b4 w1 10ms", "npy", 240, 64 * K, 4, 1, 10),
    one("npy 1M b2 w0 15ms", "npy", 80, MIB, 2, 0, 15),
    one("npy 16M b1 w2 50ms", "npy", 24, 16 * MIB, 1, 2, 50),
    one("npy 4K b16 w4 20ms", "npy", 640, 4 * K, 16, 4, 20),
    one("npy 256K 4 a file b4 w1 20ms", "npy", 32, 256 * K, 4, 1, 20, dataset__num_samples_per_file=4),
    one("npy 150K b4 w1 20ms 2 ranks", "npy", 160, KB, 4, 1, 20, ranks=2),
    one("hdf5 64K b4 w1 15ms", "hdf5", 160, 64 * K, 4, 1, 15),
    one("hdf5 1K b8 w0 10ms", "hdf5", 320, K, 8, 0, 10),
    one("hdf5 4M b2 w2 30ms", "hdf5", 64, 4 * MIB, 2, 2, 30),
    one("hdf5 150K 8 a file b4 w1 20ms", "hdf5", 32, KB, 4, 1, 20, dataset__num_samples_per_file=8),
    one("hdf5 512K b1 w4 10ms", "hdf5", 100, 512 * K, 1, 4, 10),
    one("csv 8K b2 w0 40ms", "csv", 40, 8 * K, 2, 0, 40, 2),
    one("csv 2K b4 w1 60ms", "csv", 80, 2 * K, 4, 1, 60, 2),
    one("csv 8K b1 w2 50ms", "csv", 24, 8 * K, 1, 2, 50),
    one("jpeg 64K b8 w1 40ms", "jpeg", 160, 64 * K, 8, 1, 40),
    one("jpeg 512K b2 w0 30ms", "jpeg", 60, 512 * K, 2, 0, 30),
    one("jpeg 150K b4 w4 20ms", "jpeg", 160, KB, 4, 4, 20),
    one("png 64K b4 w0 20ms", "png", 120, 64 * K, 4, 0, 20),
    one("png 256K b8 w1 60ms", "png", 160, 256 * K, 8, 1, 60),
    one("png 2M b1 w2 40ms", "png", 40, 2 * MIB, 1, 2, 40),
    one("indexed 64K b4 w0 10ms", "indexed_binary", 240, 64 * K, 4, 0, 10),
    one("indexed 256K b2 w1 10ms", "indexed_binary", 160, 256 * K, 2, 1, 10),
    one("indexed 1M 4 a file b4 w2 30ms", "indexed_binary", 48, MIB, 4, 2, 30, dataset__num_samples_per_file=4),
    one("mmap 64K b8 w0 10ms", "mmap_indexed_binary", 320, 64 * K, 8, 0, 10),
    one("mmap 1M b2 w2 15ms", "mmap_indexed_binary", 120, MIB, 2, 2, 15),
    one("npz 64K b1 w2 20ms, evaluation", "npz", 60, 64 * K, 1, 2, 20, **evaluated()),
    one("hdf5 64K b2 w0 10ms, evaluation", "hdf5", 80, 64 * K, 2, 0, 10, **evaluated(40, 10, 2)),
    one("png 150K b4 w1 30ms, evaluation", "png", 96, KB, 4, 1, 30, **evaluated(32, 20, 2)),
    one("npz 64K b1 w1 20ms, saved each 8 steps", "npz", 40, 64 * K, 1, 1, 20,
        **saved(checkpoint__steps_between_checkpoints=8)),
    one("npy 256K b2 w2 20ms, saved each epoch", "npy", 80, 256 * K, 2, 2, 20,
        **saved(checkpoint__epochs_between_checkpoints=1)),
    one("npz 64K b2 w1, normal 15ms", "npz", 100, 64 * K, 2, 1, 15, **drawn("normal", mean=0.015, stdev=0.004)),
    one("npz 150K b4 w2, gamma 20ms", "npz", 160, KB, 4, 2, 20, **drawn("gamma", shape=4, scale=0.005)),
    one("hdf5 64K b2 w1, uniform 10 to 30ms", "hdf5", 80, 64 * K, 2, 1, 20, **drawn("uniform", min=0.01, max=0.03)),
    one("npz 64K b2 w2 20ms, spawn", "npz", 80, 64 * K, 2, 2, 20, reader__multiprocessing_context="spawn"),
    one("hdf5 64K b2 w1 20ms, forkserver", "hdf5", 80, 64 * K, 2, 1, 20, reader__multiprocessing_context="forkserver"),
    one("npy 64K b4 w4 30ms, forkserver", "npy", 160, 64 * K, 4, 4, 30, reader__multiprocessing_context="forkserver"),
    one("npz 150K b2 w1 20ms, shuffled", "npz", 80, KB, 2, 1, 20, reader__file_shuffle="seed",
        reader__sample_shuffle="seed"),
    one("npz 64K b2 w2 20ms, 20 steps", "npz", 120, 64 * K, 2, 2, 20, train__total_training_steps=20),
    one("npz 256K b2 w2 20ms, preprocess 8ms", "npz", 80, 256 * K, 2, 2, 20, reader__preprocess_time=0.008),
    one("npy 256K b4 w2 25ms, prefetch 8", "npy", 120, 256 * K, 4, 2, 25, reader__prefetch_size=8),
    one("npz 256K drawn sizes b4 w1 20ms", "npz", 120, 256 * K, 4, 1, 20, dataset__record_length_bytes_stdev=60000),
    one("jpeg 150K b4 w2 100ms", "jpeg", 80, KB, 4, 2, 100),
]


def folder_of(base, r):
    keys = (r["format"], r["files"], r["size"], *(f"{k}{v}" for k, v in r["keys"].items() if k.startswith("dataset__")))
    return base / "_".join(map(str, keys))


def side(a, r, which, out, base):
    shutil.rmtree(out, ignore_errors=True)
    ck = base / "checkpoints"
    shutil.rmtree(ck, ignore_errors=True)
    keys = [*overrides(r, folder_of(base, r), out), f"++workload.checkpoint.checkpoint_folder={ck}"]
    if which == "dlio":
        launch = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", r["ranks"]] if r["ranks"] > 1 else []
        call([*launch, PEER, *keys])
    else:
        costs = [f"framework.costs={a.costs}"] if a.costs else []
        call([a.stoker, "run", "-q", *keys, "-n", r["ranks"], "compat.dlio=true", *costs])
    found = results(out, r["ranks"])
    found["eval"] = json.loads((out / "summary.json").read_text())["metric"].get("eval_au_percentage", [])
    return found


def measure(a, rows, have):
    base, until = pathlib.Path("/dev/shm/many"), time.monotonic() + a.seconds
    base.mkdir(exist_ok=True)
    for i in range(a.rounds):
        for r in rows:
            for which in ("dlio", "ours") if i % 2 == 0 else ("ours", "dlio"):
                if (r["name"], which, i) in have:
                    continue
                if time.monotonic() > until:
                    return 3
                data = folder_of(base, r)
                if not data.exists():
                    call([a.stoker, "generate", "-q", *overrides(r, data, base / "made")])
                try:
                    found = side(a, r, which, base / f"out_{os.getpid()}", base)
                except RuntimeError as e:
                    print(f"failed: {r['name']}, {which}: {e}", file=sys.stderr)
                    found = None
                with open(a.out, "a") as f:
                    f.write(json.dumps(dict(name=r["name"], side=which, round=i, found=found)) + "\n")
    return 0


def middle(runs):
    med = statistics.median
    later = [w for x in runs for w in x["wall"][1:]]
    evals = [statistics.mean(x["eval"]) for x in runs if x["eval"]]
    return (med(statistics.mean(x["au"]) for x in runs), med(x["wall"][0] for x in runs), med(later) if later else None,
            med(evals) if evals else None)


def table(rows, lines):
    runs = collections.defaultdict(list)
    for x in lines:
        if x["found"]:
            runs[x["name"], x["side"]].append(x["found"])
    au, first, later, evals = [], [], [], []
    for r in rows:
        ours, dlio = runs[r["name"], "ours"], runs[r["name"], "dlio"]
        if not ours or not dlio:
            continue
        o, d = middle(ours), middle(dlio)
        text = f"{r['name']:40} {len(ours)}/{len(dlio)} AU {o[0]:5.1f} | {d[0]:5.1f} ({o[0] - d[0]:+5.1f})"
        au.append(abs(o[0] - d[0]))
        for name, i, kept in (("first", 1, first), ("later", 2, later)):
            if o[i] and d[i]:
                kept.append(abs(o[i] / d[i] - 1))
                text += f"  {name} {o[i]:.3f} | {d[i]:.3f} ({100 * (o[i] / d[i] - 1):+5.1f} %)"
        if o[3] is not None and d[3] is not None:
            evals.append(abs(o[3] - d[3]))
            text += f"  evaluation {o[3]:.1f} | {d[3]:.1f}"
        print(text)
    for name, kept, bounds, by in (("AU", au, (2, 4), "points"), ("first epochs", first, (0.03, 0.06), ""),
                                   ("later epochs", later, (0.03, 0.06), ""), ("AU of evaluation", evals, (2, 4), "points")):
        if kept:
            print(f"{name}: " + ", ".join(f"within {b} {by} in {sum(k <= b for k in kept)}" for b in bounds) +
                  f" of {len(kept)}")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("stoker", type=os.path.abspath)
    a.add_argument("out")
    a.add_argument("--costs", default="")
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--seconds", type=float, default=1e9)
    a.add_argument("--only", default="")
    a.add_argument("--table", action="store_true")
    a = a.parse_args()
    rows = [r for r in ROWS if not a.only or any(w in r["name"] for w in a.only.split(";"))]
    lines = [json.loads(x) for x in open(a.out)] if os.path.exists(a.out) else []
    if a.table:
        return table(rows, lines)
    if not PEER or not os.access(PEER, os.X_OK):
        sys.exit("DLIO_COMMAND does not name a program")
    return measure(a, rows, {(x["name"], x["side"], x["round"]) for x in lines})


if __name__ == "__main__":
    sys.exit(main())
