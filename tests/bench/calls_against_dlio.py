"""System calls of real DLIO and of Stoker with compat.dlio, on the same files: what each reader of each rank opens,
reads, maps and closes, in which order, with which offsets and sizes; how many steps every epoch has; and the files
that checkpoints leave.

    python3 tests/bench/calls_against_dlio.py STOKER DLIO FOLDER [CONFIGURATION...]

DLIO is a command that takes dlio_benchmark's arguments, for Debian's Python, PyTorch 1.13 and Open MPI. FOLDER holds
datasets, which DLIO generates once, and logs. Needs strace. Not a test: what is compared is installed by hand.

Configurations whose name begins with "parquet" need the DLIO of MLPerf Storage (mlcommons/DLIO_local_changes), and the
others argonne-lcf/dlio_benchmark. Its pool of threads reads row groups in any order, and what the first batch needs is
read once more before each epoch and after the last one: there the reads of all ranks are compared as sets, and the
ranks that read a file.
"""
import collections
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

CALLS = "openat,read,pread64,readv,preadv,preadv2,mmap,close,lseek,dup,dup2,dup3,fcntl,prctl,write,pwrite64,writev,fsync"
LINE = re.compile(r"^(\w+)\((.*)\)\s+= (-?\d+|0x[0-9a-f]+)(<[^>]*>)?")
PATH = re.compile(r"<(/[^>]*)>")

BASE = {
    "dataset.format": "npz", "dataset.num_files_train": 16, "dataset.num_files_eval": 0,
    "dataset.num_samples_per_file": 1, "dataset.record_length_bytes": 65536,
    "dataset.num_subfolders_train": 0, "dataset.num_subfolders_eval": 0,
    "reader.batch_size": 4, "reader.batch_size_eval": 1, "reader.read_threads": 1,
    "train.epochs": 2, "train.computation_time": 0.001, "evaluation.eval_time": 0.001,
    "workflow.evaluation": "False", "workflow.train": "True",
}
DATASET = ("dataset.",)


def case(ranks=1, **keys):
    return ranks, {k.replace("__", "."): v for k, v in keys.items()}


def fmt(name, ranks=1, **keys):
    return case(ranks, dataset__format=name, **keys)


MANY = {"dataset__num_samples_per_file": 3, "dataset__num_files_train": 26}
EVAL = {"workflow__evaluation": "True", "dataset__num_files_eval": 7}
CHECKPOINT = {"workflow__checkpoint": "True", "checkpoint__steps_between_checkpoints": 2}
LAYERS = {"model__type": "transformer", "model__num_layers": 3, "model__transformer__vocab_size": 1000,
          "model__transformer__hidden_size": 64, "model__transformer__ffn_hidden_size": 128,
          "model__transformer__num_attention_heads": 4, "model__transformer__num_kv_heads": 2}

CASES = {
    # workers and ranks
    "npz 1x0": case(reader__read_threads=0),
    "npz 1x1": case(),
    "npz 1x2": case(reader__read_threads=2),
    "npz 1x4": case(reader__read_threads=4, dataset__num_files_train=32),
    "npz 2x0 uneven": case(2, reader__read_threads=0, dataset__num_files_train=26),
    "npz 2x2": case(2, reader__read_threads=2, dataset__num_files_train=34),
    "npz 4x1": case(4, reader__batch_size=2, dataset__num_files_train=19),
    "npz 1x2 prefetch 8": case(reader__read_threads=2, reader__prefetch_size=8, dataset__num_files_train=64),
    "npz 1x3 prefetch 0": case(reader__read_threads=3, reader__prefetch_size=0, dataset__num_files_train=40),
    "npz 1x2 fewer batches": case(reader__read_threads=4, dataset__num_files_train=8),
    # formats
    "npz 3 MiB": case(dataset__record_length_bytes=3145728),
    "npz 100 B": case(dataset__record_length_bytes=100),
    "npz stdev": case(dataset__record_length_bytes_stdev=20000),
    "npz subfolders": case(2, dataset__num_subfolders_train=3),
    "npz float32": case(dataset__record_element_type="float32"),
    "npz dims": case(dataset__record_dims="[7,9,11]"),
    "npy 1x1": fmt("npy"),
    "npy 2x2": fmt("npy", 2, reader__read_threads=2),
    "npy 3 MiB": fmt("npy", dataset__record_length_bytes=3145728),
    "hdf5 1x1": fmt("hdf5"),
    "hdf5 2x2": fmt("hdf5", 2, reader__read_threads=2),
    "hdf5 gzip": fmt("hdf5", dataset__compression="gzip"),
    "csv 1x1": fmt("csv", dataset__record_length_bytes=4096),
    "csv 1x2": fmt("csv", reader__read_threads=2, dataset__record_length_bytes=2000),
    "png 1x2": fmt("png", reader__read_threads=2),
    "jpeg 1x2": fmt("jpeg", reader__read_threads=2),
    "jpeg 2x1": fmt("jpeg", 2),
    "indexed 1x1": fmt("indexed_binary"),
    "indexed 2x2": fmt("indexed_binary", 2, reader__read_threads=2),
    "mmap 1x0": fmt("mmap_indexed_binary", reader__read_threads=0),
    "mmap 1x1": fmt("mmap_indexed_binary"),
    "mmap 2x2": fmt("mmap_indexed_binary", 2, reader__read_threads=2),
    "synthetic 1x1": fmt("synthetic"),
    # several samples a file
    "npz 26x3": case(**MANY),
    "npz 34x4 1x2": case(dataset__num_files_train=34, dataset__num_samples_per_file=4, reader__read_threads=2,
                         reader__batch_size=2),
    "npz 34x4 2x1": case(2, dataset__num_files_train=34, dataset__num_samples_per_file=4, reader__batch_size=2),
    "npy 26x3 1x2": fmt("npy", reader__read_threads=2, **MANY),
    "hdf5 26x3 2x1": fmt("hdf5", 2, **MANY),
    "csv 26x3": fmt("csv", dataset__record_length_bytes=1024, **MANY),
    "indexed 26x3": fmt("indexed_binary", **MANY),
    "indexed 26x3 2x2": fmt("indexed_binary", 2, reader__read_threads=2, **MANY),
    "mmap 26x3": fmt("mmap_indexed_binary", **MANY),
    "mmap 34x4 2x2": fmt("mmap_indexed_binary", 2, reader__read_threads=2, reader__batch_size=2,
                         dataset__num_files_train=34, dataset__num_samples_per_file=4),
    "npz 26x3 subfolders": case(2, dataset__num_subfolders_train=2, **MANY),
    "npz 6x4 none left": case(dataset__num_files_train=6, dataset__num_samples_per_file=4),
    # the reader's keys
    "npz read_type memory": case(reader__read_type="memory"),
    "npz read_type on_demand": case(reader__read_type="on_demand"),
    "hdf5 26x3 memory": fmt("hdf5", reader__read_type="memory", **MANY),
    "indexed 26x3 memory": fmt("indexed_binary", reader__read_type="memory", **MANY),
    "npz file_shuffle": case(reader__file_shuffle="seed"),
    "npz sample_shuffle": case(2, reader__sample_shuffle="seed"),
    "npz shuffle 26x3": case(reader__file_shuffle="seed", reader__sample_shuffle="random", **MANY),
    "npy odirect": fmt("npy", reader__odirect="True"),
    "npz odirect": case(reader__odirect="True"),
    "npz spawn": case(reader__read_threads=2, reader__multiprocessing_context="spawn"),
    "npz file_access shared": case(2, reader__file_access="shared"),
    "npz steps 3": case(train__total_training_steps=3),
    "npz seed": case(train__seed=7, train__seed_change_epoch="False", reader__sample_shuffle="seed"),
    # evaluation
    "npz eval 1x1": case(**EVAL),
    "npz eval 2x2": case(2, reader__read_threads=2, **EVAL),
    "npz eval 1x0": case(reader__read_threads=0, reader__batch_size_eval=2, **EVAL),
    "hdf5 eval 26x3": fmt("hdf5", reader__batch_size_eval=2, **EVAL, **MANY),
    "mmap eval": fmt("mmap_indexed_binary", reader__read_threads=2, **EVAL),
    "npz eval after 2": case(evaluation__eval_after_epoch=2, evaluation__epochs_between_evals=2, train__epochs=4, **EVAL),
    # checkpoints
    "checkpoint": case(**CHECKPOINT),
    "checkpoint model_size": case(model__model_size=50000, **CHECKPOINT),
    "checkpoint model_size_bytes": case(2, model__model_size_bytes=50000, **CHECKPOINT),
    "checkpoint epochs": case(workflow__checkpoint="True", checkpoint__epochs_between_checkpoints=1),
    "checkpoint groups": case(model__model_size=30102, model__type="megatron_deepspeed", model__num_layers=4,
                              model__optimization_groups="[10092,8650,793]", model__layer_parameters="[5258,2097]",
                              **CHECKPOINT),
    "checkpoint groups 2 tp": case(2, model__model_size=30102, model__type="megatron_deepspeed", model__num_layers=4,
                                   model__parallelism__tensor=2, model__parallelism__zero_stage=1,
                                   model__optimization_groups="[10092,8650,793]",
                                   model__layer_parameters="[5258,2097]", **CHECKPOINT),
    "checkpoint layers 2 pp": case(2, model__parallelism__pipeline=2, model__parallelism__zero_stage=1, **LAYERS,
                                   **CHECKPOINT),
    "checkpoint zero 1": case(2, model__parallelism__zero_stage=1, **LAYERS, **CHECKPOINT),
    "checkpoint zero 2": case(2, model__parallelism__zero_stage=2, **LAYERS, **CHECKPOINT),
    "checkpoint zero 3": case(2, model__parallelism__zero_stage=3, **LAYERS, **CHECKPOINT),
    "checkpoint zero 0": case(2, **LAYERS, **CHECKPOINT),
    "checkpoint datatypes": case(model__model_datatype="fp32", model__optimizer_datatype="bf16", **LAYERS,
                                 **CHECKPOINT),
    "checkpoint only": case(workflow__train="False", workflow__checkpoint="True", checkpoint__num_checkpoints_write=2,
                            checkpoint__num_checkpoints_read=2, **LAYERS),
    "checkpoint subset": case(2, checkpoint__mode="subset", model__parallelism__data=4,
                              model__parallelism__zero_stage=3, workflow__train="False", workflow__checkpoint="True",
                              checkpoint__num_checkpoints_write=2, **LAYERS),
}

COLUMNS = ("[{name: a, dtype: float32, size: 40}, {name: b, dtype: float64, size: 8}, "
           "{name: c, dtype: uint8, size: 700}]")


def parquet(ranks=1, rows=4096, group=512, **keys):
    return fmt("parquet", ranks, dataset__num_samples_per_file=rows, dataset__parquet__row_group_size=group,
               dataset__parquet__columns=COLUMNS, **dict({"dataset__num_files_train": 8, "reader__batch_size": 700,
                                                         "reader__read_threads": 2}, **keys))


CASES.update({
    "parquet 1x2": parquet(),
    "parquet 1x0": parquet(reader__read_threads=0),
    "parquet 2x2": parquet(2),
    "parquet 3x2 uneven": parquet(3),
    "parquet 1x3 uneven": parquet(reader__read_threads=3),
    "parquet 2x1 window 3": parquet(2, storage__storage_options__prefetch_window=3, reader__read_threads=1),
    "parquet 1x2 large groups": parquet(rows=6000, group=4000),
    "parquet 1x2 one group": parquet(rows=1000, group=1000),
    "parquet 1x2 snappy": parquet(dataset__compression="snappy"),
    "parquet 1x2 a column": parquet(storage__storage_options__columns="[b]"),
    "parquet 1x2 two columns": parquet(storage__storage_options__columns="[a,c]"),
})

# files, samples a file, ranks, batch, workers: how many files DLIO leaves out
for grid in ((25, 2, 3, 2, 1), (50, 5, 1, 2, 0), (9, 4, 2, 1, 2), (31, 2, 2, 3, 4), (13, 1, 3, 2, 2), (40, 10, 2, 1, 2),
             (7, 7, 1, 1, 1), (33, 4, 4, 2, 1)):
    CASES["trim " + "x".join(map(str, grid))] = case(
        grid[2], dataset__format="npy", dataset__record_length_bytes=2048, dataset__num_files_train=grid[0],
        dataset__num_samples_per_file=grid[1], reader__batch_size=grid[3], reader__read_threads=grid[4])
# indices of shuffled samples
CASES["indexed shuffled"] = fmt("indexed_binary", 2, reader__read_threads=2, reader__sample_shuffle="seed", train__seed=9)
CASES["mmap shuffled 26x3"] = fmt("mmap_indexed_binary", 1, reader__sample_shuffle="random",
                                  train__seed_change_epoch="False", **MANY)
CASES["indexed more workers"] = fmt("indexed_binary", reader__read_threads=4, dataset__num_files_train=8)


def overrides(keys):
    return [f"++workload.{k}={v}" for k, v in keys.items()]


def dataset_of(folder, keys):
    mine = {k: v for k, v in keys.items() if k.startswith(DATASET)}
    return folder / "data" / hashlib.sha1(json.dumps(mine, sort_keys=True).encode()).hexdigest()[:12]


def strace(log, command):
    return ["strace", "-ff", "--seccomp-bpf", "-y", "-s", "16", "-e", "signal=none", "-e", "trace=" + CALLS,
            "-o", str(log), "--", *command]


def run(command, out, **kw):
    with open(out, "w") as f:
        return subprocess.run([str(x) for x in command], stdout=f, stderr=subprocess.STDOUT, timeout=300, **kw).returncode


def generate(dlio, data, keys):
    if (data / "made").exists():
        return
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    mine = dict(keys, **{"workflow.generate_data": "True", "workflow.train": "False", "dataset.data_folder": data,
                         "workflow.checkpoint": "False", "workflow.evaluation": "False"})
    out = data.parent / (data.name + ".out")
    if run([dlio, "workload=default", *overrides(mine), f"++workload.output.folder={out}", f"++hydra.run.dir={out}"],
           data / "log"):
        raise SystemExit(f"DLIO could not generate: {data / 'log'}")
    (data / "made").touch()


def parse(path, data):
    """Name and calls of one thread or process: what it did to files below `data`."""
    place, calls, name, copies = {}, [], None, set()
    for line in open(path, errors="replace"):
        m = LINE.match(line)
        if not m:
            continue
        call, args, ret, opened = m.group(1), m.group(2), int(m.group(3), 0), m.group(4)
        if call == "prctl":
            name = args.split('"')[1] if "PR_SET_NAME" in args and '"' in args else name
            continue
        at = PATH.search(opened or "") if call == "openat" else PATH.search(args)
        if not at or not at.group(1).startswith(str(data) + "/") or ret < 0:
            continue
        file = at.group(1)[len(str(data)) + 1:]
        if call == "openat":
            if "O_DIRECTORY" in args:
                continue
            place[ret] = [0]
            calls.append(("open", file, "direct" if "O_DIRECT" in args else "", 0, 0))
            continue
        fd = int(args.split("<")[0]) if args[0].isdigit() else None
        # a thread of a pool reads by an offset what another one has opened
        if call not in ("mmap", "pread64", "preadv", "preadv2") and fd not in place:
            continue
        if call == "mmap":
            if "MAP_PRIVATE" in args or "MAP_SHARED" in args:
                calls.append(("map", file, "", int(args.split(",")[-1], 0), int(args.split(",")[1])))
        elif call in ("dup", "dup2", "dup3") or call == "fcntl" and "F_DUPFD" in args:
            place[ret] = place[fd]
            copies.add(ret)
        elif call == "close":
            if fd not in copies:
                calls.append(("close", file, "", 0, 0))
            copies.discard(fd)
            del place[fd]
        elif call == "lseek":
            place[fd][0] = ret
        elif call in ("read", "readv"):
            asked = int(args.rsplit(",", 1)[1]) if call == "read" else ret
            calls.append(("read", file, asked, place[fd][0], ret))
            place[fd][0] += ret
        elif call in ("pread64", "preadv", "preadv2"):
            parts = args.rsplit(",", 2) if call == "pread64" else (None, ret, args.split("],")[-1].split(",")[1])
            calls.append(("read", file, int(parts[1]), int(parts[2]), ret))
    return name, without_looks(calls)


def without_looks(calls):
    """Without files that were opened and closed with nothing read: how much of them is in the page cache."""
    kept, pending = [], {}
    for call in calls:
        kept.append(call)
        if call[0] == "open":
            pending[call[1]] = len(kept) - 1
        elif call[0] == "close" and kept[pending.get(call[1], -1)][0] == "open" and len(kept) - 2 == pending.get(call[1]):
            del kept[-2:]
    return kept


def threads(log, data):
    found = []
    for path in sorted(log.parent.glob(log.name + ".*"), key=lambda p: (len(p.name), p.name)):
        name, calls = parse(path, data)
        if calls:
            found.append((name, calls))
    return found


def steps(out, ranks):
    """Steps of each rank: of every epoch's training and its evaluation."""
    result = []
    for r in range(ranks):
        try:
            o = json.load(open(out / f"{r}_output.json"))
        except FileNotFoundError:
            return None
        result.append([[sum(len(v) for k, v in o[e].get("load", {}).items() if k.startswith("block")),
                        len(o[e].get("load", {}).get("eval", []))]
                       for e in sorted((e for e in o if e.isdigit()), key=int)])
    return result


def saved(folder):
    return sorted((str(p.relative_to(folder)), p.stat().st_size) for p in folder.rglob("*") if p.is_file())


def dlio_calls(dlio, folder, name, ranks, keys):
    """Once: what DLIO does with a configuration does not change."""
    kept = folder / "calls" / (hashlib.sha1(json.dumps([ranks, keys], sort_keys=True).encode()).hexdigest() + ".json")
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(trace_dlio(dlio, folder, ranks, keys)))
    status, readers, made, files = json.loads(kept.read_text())
    return status, [(r, [tuple(c) for c in calls]) for r, calls in readers], made, [tuple(f) for f in files]


def trace_dlio(dlio, folder, ranks, keys):
    keys = dict(keys, **{"dataset.data_folder": dataset_of(folder, keys), "checkpoint.checkpoint_folder": folder / "ck"})
    out, log = folder / "dlio", folder / "trace" / "dlio"
    args = [dlio, "workload=default", *overrides(keys), f"++workload.output.folder={out}", f"++hydra.run.dir={out}"]
    for old in (out, log.parent, folder / "ck"):
        shutil.rmtree(old, ignore_errors=True)
    log.parent.mkdir()
    if ranks == 1:
        command = strace(str(log) + ".0", args)
    else:
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), "sh", "-c",
                   "log=$1; shift; exec " + " ".join(strace('"$log.$OMPI_COMM_WORLD_RANK"', ['"$@"'])), "sh", log, *args]
    status = run(command, folder / "dlio.log")
    readers = []
    for r in range(ranks):
        readers += [(r, calls) for _, calls in threads(folder / "trace" / f"dlio.{r}", keys["dataset.data_folder"])]
    return status, readers, steps(out, ranks), saved(folder / "ck")


def stoker_calls(stoker, folder, name, ranks, keys, more=()):
    keys = dict(keys, **{"dataset.data_folder": dataset_of(folder, keys), "checkpoint.checkpoint_folder": folder / "ck",
                         "compat.dlio": "true"})
    out, log = folder / "stoker", folder / "trace" / "stoker"
    for old in (out, folder / "ck", log.parent):
        shutil.rmtree(old, ignore_errors=True)
    log.parent.mkdir()
    args = [stoker, "run", "default", "-q", "-n", str(ranks), *overrides(keys), "-o", out, *more]
    if keys["dataset.format"] == "parquet":  # DLIO's own are of sizes that follow from their content
        args.append("dataset.names=listed")
    status = run(strace(log, [str(a) for a in args]), folder / "stoker.log")
    return status, threads(log, keys["dataset.data_folder"]), steps(out, ranks), saved(folder / "ck")


def brief(call):
    return " ".join(str(x) for x in call if x != "")


def differ(real, ours, close):
    """None, or where two sequences part."""
    real, ours = ([c for c in s if close or c[0] != "close"] for s in (real, ours))
    for i in range(max(len(real), len(ours))):
        a = real[i] if i < len(real) else None
        b = ours[i] if i < len(ours) else None
        if a != b:
            return f"call {i} of {len(real)} and {len(ours)}: DLIO {a and brief(a)} | Stoker {b and brief(b)}"
    return None


def compare(real, ours, close):
    """Each of DLIO's readers beside the one of ours that begins with the same file."""
    left, found = [c for _, c in ours], []
    for rank, calls in sorted(real, key=lambda x: x[0]):
        best = next((o for o in left if differ(calls, o, close) is None), None)
        if best is None:
            best = next((o for o in left if o[0][1] == calls[0][1]), None)
            if best is None:
                found.append(f"rank {rank}: no reader of ours begins with {calls[0][1]}, {len(calls)} calls")
                continue
            found.append(f"rank {rank}: " + differ(calls, best, close))
        left.remove(best)
    return found + [f"a reader of ours that DLIO does not have: {len(o)} calls from {brief(o[0])}" for o in left]


def read_by(readers):
    """{(file, offset, asked)} of all readers; {file: ranks that opened it}."""
    reads, by = set(), collections.defaultdict(set)
    for rank, calls in readers:
        for what, file, asked, offset, _ in calls:
            if what == "read":
                reads.add((file, offset, asked))
            elif what == "open" and rank is not None:
                by[file].add(rank)
    return reads, {file: sorted(r) for file, r in by.items()}


def compare_pools(real, ours):
    """Readers with a pool of threads: all reads, and which ranks have a file. The workers of a rank open its files."""
    ours = [(int(m[1]) if (m := WORKER.match(name)) else None, calls) for name, calls in ours]
    (theirs, dealt), (mine, my_dealt) = read_by(real), read_by(ours)
    found = [f"{who} alone reads {len(a - b)} of {len(a)}: {sorted(a - b)[:3]}"
             for who, a, b in (("DLIO", theirs, mine), ("Stoker", mine, theirs)) if a - b]
    return found + [f"{f} is of ranks {dealt.get(f)} with DLIO, {my_dealt.get(f)} with Stoker"
                    for f in sorted(dealt.keys() | my_dealt.keys()) if dealt.get(f) != my_dealt.get(f)][:3]


def one(stoker, dlio, folder, name):
    ranks, keys = CASES[name]
    keys = dict(BASE, **keys)
    generate(dlio, dataset_of(folder, keys), keys)
    status, real, real_steps, real_saved = dlio_calls(dlio, folder, name, ranks, keys)
    mine_status, ours, our_steps, our_saved = stoker_calls(stoker, folder, name, ranks, keys)
    pooled = keys["dataset.format"] == "parquet"
    # what looks at the dataset before and after training is not a reader
    ours = [(n, c) for n, c in ours if n is not None and re.match(READER, n)]
    found = compare_pools(real, ours) if pooled else compare(real, ours, False)
    if real_steps != our_steps:
        found.append(f"steps: DLIO {real_steps} | Stoker {our_steps}")
    if real_saved != our_saved:
        found.append(f"checkpoints: DLIO alone {sorted(set(real_saved) - set(our_saved))} | "
                     f"Stoker alone {sorted(set(our_saved) - set(real_saved))}")
    if status or mine_status:
        found.append(f"status: DLIO {status} | Stoker {mine_status}")
    if not found and not pooled:
        found += ["(closes) " + x for x in compare(real, ours, True)[:1]]
    total = collections.Counter(c[0] for _, s in real for c in s)
    return found, len(real), total


READER = r"[a-z]*[0-9]+(\.[0-9]+)?$"
WORKER = re.compile(r"(?:w|rank)(\d+)")


def main():
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    stoker, dlio, folder = os.path.abspath(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
    if not os.path.exists(dlio) or not shutil.which("strace"):
        print("skipped: DLIO or strace is not here")
        return 77
    folder.mkdir(parents=True, exist_ok=True)
    bad = 0
    for name in sys.argv[4:] or CASES:
        found, readers, total = one(stoker, dlio, folder, name)
        hard = [f for f in found if not f.startswith("(closes)")]
        bad += bool(hard)
        print(f"{'differs' if hard else 'equal  '} {name}: {readers} readers, {total['open']} opens, {total['read']} reads, "
              f"{total['map']} maps", flush=True)
        for f in found[:6]:
            print("        " + f[:400], flush=True)
    print(f"{bad} differ")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
