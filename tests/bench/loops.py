"""Epochs of loops as users write them today, over torch's DataLoader and over tf.data, beside those of our loaders with the
same keys and a profile of the same Python, on three stores.

    loops.py [STOKER] [--torch PROFILE] [--tensorflow PROFILE] [--rounds N] [--only WORD] [--framework NAME] [--store NAME]
             [--raw FILE] [--told FILE]

Sides alternate in each round; figures are medians over the rounds, of the first epoch and of those after it. --raw appends
what was measured to a file, --told says what such a file holds. STOKER_PYTHON names the Python of the frameworks. Needs
root."""
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
from util import skip, tiny  # noqa: E402

PYTHON = os.environ.get("STOKER_PYTHON", "/usr/bin/python3")
LOOP = HERE.parent / "interop/framework_loop.py"
STORES = {"memory": dict(kind="memory"), "slow": dict(kind="calls", bytes_s=100e6, open_us=500),
          "disk": dict(kind="disk", mib_s=80)}
STEP, EPOCHS, CROP = 0.04, 4, 160
TF = dict(framework="tensorflow", format="tfrecord", files=12, records=8, size=500000, batch=4)


def torch_row(fmt, size, workers, **task):
    name = f"{fmt} with {workers} workers" if workers else f"{fmt} without workers"
    keys = dict(reader__read_threads=workers, reader__prefetch_size=2 * workers, reader__persistent_workers="true",
                reader__transport="shared_memory" if workers else "none")
    return name, dict(framework="pytorch", format=fmt, files=64, records=1, size=size, batch=4, workers=workers,
                      persistent=True, **task), keys


IMAGE = dict(reader__transformed_record_dims=f"[3,{CROP},{CROP}]", reader__transformed_record_element_type="float32")
ROWS = [torch_row("npz", 1 << 20, n) for n in (0, 2, 4)]
ROWS += [(name, task, dict(keys, **IMAGE)) for name, task, keys in
         [torch_row("jpeg", 65536, n, transform=CROP) for n in (0, 2, 4)]]
ROWS += [
    ("num_parallel_reads 2", dict(TF, reads=2), dict(reader__read_threads=2)),
    ("map and prefetch", dict(TF, reads=2, map=2, prefetch=4),
     dict(reader__read_threads=2, reader__computation_threads=2, reader__prefetch_size=4)),
    ("interleave, shuffle, map, prefetch", dict(TF, interleave=dict(cycle=4, calls="auto"), shuffle=16, seed=123, map="auto",
                                                prefetch="auto"),
     dict(reader__read_threads=4, reader__interleave="calls", reader__sample_shuffle="seed", reader__shuffle_size=16,
          reader__computation_threads=-1, reader__prefetch_size=-1)),
]


def arguments(task, keys, costs, data, out):
    base = dict(fmt=task["format"], files=task["files"], framework=task["framework"], reader__data_loader=task["framework"],
                dataset__num_samples_per_file=task["records"], dataset__record_length_bytes=task["size"],
                reader__batch_size=task["batch"], reader__prefetch_size=0, reader__computation_threads=0,
                train__computation_time=STEP, train__epochs=EPOCHS, reader__sample_shuffle="off", framework__costs=costs)
    return tiny(data, out, **{**base, **keys})


def check(argv, **more):
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=300, **more)
    if done.returncode:
        raise RuntimeError(f"{argv}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def theirs(tasks, store, data):
    """Of all tasks, each in a Python of its own: {name: [seconds of each epoch]}, and what their transforms take."""
    walls, transform = {}, {}
    for name, task in tasks:
        store.evict()
        task = dict(task, data=str(data[name]), step=STEP, epochs=EPOCHS, ask=True)
        for line in check([PYTHON, LOOP, json.dumps([task])], **store.surround()).splitlines():
            told = json.loads(line)
            if "transform_s" in told:
                transform[name] = told["transform_s"]
            else:
                walls[name] = [e["wall"] for e in told["epochs"]]
    return walls, transform


def ours(a, rows, store, data, transform, tmp):
    walls = {}
    for name, task, keys in rows:
        store.evict()
        if name in transform:
            keys = dict(keys, reader__preprocess_time=transform[name])
        keys = dict(keys, workflow__generate_data="false")
        costs = a.torch if task["framework"] == "pytorch" else a.tensorflow
        check([a.stoker, "run", *arguments(task, keys, costs, data[name], tmp / "out")], **store.surround())
        with open(tmp / "out/result.json") as f:
            walls[name] = [e["wall_s"] for e in json.load(f)["training"]["epochs"]]
    return walls


def measure(a, where, rows, tmp):
    kinds = {(t["framework"], t["format"]): t for _, t, _ in rows}
    size = sum(2 * t["files"] * t["records"] * t["size"] for t in kinds.values())
    with Store(STORES[where], size) as store:
        data = {}
        for (framework, fmt), task in kinds.items():
            folder = store.data / fmt
            check([a.stoker, "generate", *arguments(task, {}, "none", folder, None)])
            data.update({name: folder for name, t, _ in rows if t["format"] == fmt})
        for _ in range(a.rounds):
            real, transform = quietly(lambda: theirs([r[:2] for r in rows], store, data), tries=1)
            made = quietly(lambda: ours(a, rows, store, data, transform, tmp), tries=1)
            for name, *_ in rows:
                yield dict(store=where, name=name, theirs=real[name], ours=made[name])


def tell(measured):
    near = [0, 0]
    for where, name in dict.fromkeys((m["store"], m["name"]) for m in measured):
        rows = [m for m in measured if (m["store"], m["name"]) == (where, name)]
        figures = []
        for i, part in enumerate((lambda e: e[:1], lambda e: e[1:])):
            real, made = (statistics.median(x for m in rows for x in part(m[side])) for side in ("theirs", "ours"))
            near[i] += abs(made / real - 1) <= 0.03
            figures.append(f"{real:.3f} ours {made:.3f} ({100 * (made / real - 1):+.1f} %)")
        print(f"{where:7} {name:36} first {figures[0]}  later {figures[1]}  of {len(rows)} rounds", flush=True)
    print(f"within 3 %: {near[0]} first epochs and {near[1]} later ones of {len({(m['store'], m['name']) for m in measured})}")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("stoker", nargs="?", default="build/stoker")
    a.add_argument("--torch", default="torch")
    a.add_argument("--tensorflow", default="tensorflow")
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--only", default="")
    a.add_argument("--store", default="", choices=["", *STORES])
    a.add_argument("--framework", default="", choices=["", "torch", "tensorflow"])
    a.add_argument("--raw", default="")
    a.add_argument("--told", default="")
    a = a.parse_args()
    if a.told:
        with open(a.told) as f:
            return tell([json.loads(line) for line in f])
    a.stoker = os.path.abspath(a.stoker)
    first()
    measured = []
    for where in [a.store] if a.store else STORES:
        for framework, module in (("pytorch", "torchvision"), ("tensorflow", "tensorflow")):
            rows = [r for r in ROWS if a.only in r[0] and r[1]["framework"] == framework and a.framework in framework]
            if rows and subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode:
                print(f"left out: {PYTHON} has no {module}")
                continue
            try:
                with tempfile.TemporaryDirectory() as tmp:
                    for one in measure(a, where, rows, pathlib.Path(tmp)) if rows else ():
                        measured.append(one)
                        if a.raw:
                            with open(a.raw, "a") as f:
                                f.write(json.dumps(one) + "\n")
            except Unavailable as e:
                print(f"left out: {where}: {e}")
    if not measured:
        skip("nothing could be measured")
    tell(measured)


if __name__ == "__main__":
    main()
