"""Results forged by one who knows the program: a measure in measures.bin is changed, every file of figures is made again
from it (tests/tools/rewrite_result.c), and all digests are written again. Only what else was measured can tell."""
import json
import os
import pathlib
import shutil
import subprocess

from measures_file import edited
from util import stoker

TOOL = pathlib.Path(os.environ.get("STOKER_TOOLS", "build/tests"), "rewrite_result")
# not from measures: what the run was asked for
ASKED = ("schema", "program", "version", "workload", "overrides", "trace", "configuration", "folder")

STEPS = [("steps", m) for m in ("ask_ns", "got_ns", "compute_begin_ns", "compute_end_ns", "barrier_in_ns", "barrier_out_ns",
                                "over_compute", "service_us")]
EPOCHS = [("epochs", m) for m in ("begin_wall_ns", "begin_ns", "train_end_ns", "payload_bytes", "delivered.count",
                                  "delivered.sum_a", "delivered.sum_b", "split.batches", "train_requested.asked_bytes",
                                  "train_requested.returned_bytes", "train_requested.known")]
EPOCHS += [("phases", m) for m in ("begin_ns", "end_ns", "number", "samples")]
EVALUATIONS = [("epochs", m) for m in ("eval_payload_bytes", "eval_delivered.count", "eval_delivered.sum_a", "eval_split.batches",
                                       "eval_requested.asked_bytes", "eval_requested.returned_bytes")]
EVALUATIONS += [("usage", m) for m in ("eval_wall_ns", "eval_order_kept")] + [("result", "eval_steps"), ("result", "evaluated")]
REQUESTS = [("io", f"kind.{k}.{m}") for k in (1, 2) for m in ("requests", "asked_bytes", "returned_bytes", "busy_ns",
                                                             "latency_ns.total", "latency_ns.min", "latency_ns.max")]
REQUESTS += [("io", "sized.0.total"), ("ranks", "service.seen"), ("ranks", "service.n"), ("ranks", "service.stride"),
             ("ranks", "workers"), ("ranks", "prefetch_batches"), ("ranks", "slow.least_ns")]
RUN = [("usage", m) for m in ("wall_ns", "order_kept", "train.known", "host_train.whole.known")]
RUN += [("result", m) for m in ("steps_per_epoch", "epochs_done", "shuffle_seed", "trained")]
RUN += [("holds", m) for m in ("usage", "series", "source", "dataset")]
CURVES = [("series", m) for m in ("user", "process_cpu_ns", "process.known", "disk.known")]
DEVICE = [("series", m) for m in ("process.rchar_bytes", "process.read_bytes", "disk.read_bytes", "disk.reads")]
DEVICE += [("usage", m) for m in ("train.read_bytes", "host_train.whole.read_bytes", "host_train.whole.reads")]
CHECKPOINTS = [("saves", m) for m in ("number", "total_steps", "begin_ns", "end_ns", "stat.payload_bytes", "stat.files",
                                      "stat.file_bytes", "io_after.rchar_bytes", "io_after.syscr")]
CHECKPOINTS += [("result", "checkpoint_totals.total_bytes"), ("result", "checkpoint_totals.files"), ("phases", "first_step"),
                ("io", "kind.3.returned_bytes"), ("io", "kind.3.requests")]
MORE = [m for chunk, m in DEVICE if chunk == "usage"]
# measured once: audit lists them as known by the digest alone
ONCE = [("result", "generation.wall_ns"), ("result", "peak_rss_bytes"), ("result", "memory_bound_bytes"),
        ("series", "cached_bytes"), ("series", "dirty_bytes"), ("usage", "cpu_train.wall_ns"),
        ("ranks", "worker_idle_ns"), ("seen", "end_ns")]
ONCE_SAVED = [("saves", m) for m in ("stall_ns", "io_before.syscr", "disk_before_bytes")]


def change(member):
    """Of the column's middle value, or the next one that is not 0: a moment is 300 ms later, a flag goes, a number is a quarter
    of it, or four times as much."""
    def of(values):
        at = next((i for i in [*range(len(values) // 2, len(values)), *range(len(values))] if values[i]), None)
        assert at is not None, (member, "has no value")
        v, values = values[at], list(values)
        if member.endswith("_ns") and 10**12 < v < 1 << 63:
            v += 300_000_000
        else:
            v = 0 if v == 1 else v * 4 if member in MORE else v // 4 if 2 < v < 1 << 63 else v + 1
        values[at] = v
        return values
    return of


def forge(base, at, chunk, member, seal, write):
    """False: the program does not read such measures at all."""
    shutil.copytree(base, at)
    measures = edited((at / "measures.bin").read_bytes(), chunk, member, change(member))
    (at / "measures.bin").write_bytes(measures)
    old = json.loads((at / "result.json").read_text())
    kept = {p: p.read_bytes() for p in (at / ".hydra").iterdir()}
    done = subprocess.run([TOOL, at], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), (chunk, member, done)
    for path, data in [*kept.items(), (at / "measures.bin", measures)]:
        path.write_bytes(data)
    if done.returncode == 0:
        new = json.loads((at / "result.json").read_text())
        for key in ASKED:
            new.pop(key, None)
            if key in old:
                new[key] = old[key]
        new["environment"]["versions"] = old["environment"]["versions"]
        new["integrity"] = new.pop("integrity")
        write(at / "result.json", new)
    seal(at)


def told(result):
    """What tells it is no measure: not the log, which a forger would edit, too."""
    topics = [c["name"] for c in result["checked"] if c["differ"] and c["name"] != "log"]
    return topics or [f["check"] for f in result["findings"] if f["level"] == "fail" and f["check"] not in ("figures", "digest")] or \
        [f["check"] for f in result["findings"] if f["level"] == "fail" and "measures.bin' is damaged" in f["text"]]


def forgeries(tmp, bases, seal, write):
    """bases: {name: (folder, cases)}. Prints how many of how many are found."""
    tried = found = unchecked = 0
    missed = []
    for name, (base, cases) in bases.items():
        work = tmp / "forged"
        work.mkdir()
        for i, (chunk, member) in enumerate(cases):
            forge(base, work / f"{i:03}", chunk, member, seal, write)
        for first in range(0, len(cases), 20):
            folders = [work / f"{i:03}" for i in range(first, min(first + 20, len(cases)))]
            results = json.loads(stoker("audit", "--quick", "--json", *folders, status=None).stdout)["results"]
            assert len(results) == len(folders), (name, len(results))
            for r in results:
                case = cases[int(pathlib.Path(r["folder"]).name)]
                tried += 1
                if told(r):
                    found += 1
                elif case in ONCE + ONCE_SAVED:
                    unchecked += 1
                    assert [u for u in r["unchecked"] if u["name"] == "parts"], r["unchecked"]
                else:
                    missed.append((name, *case))
        shutil.rmtree(work)
    print(f"{tried} measures forged with every file made again: {found} found, {unchecked} known by the digest alone and listed as that, "
          f"{len(missed)} missed")
    for miss in missed:
        print("   missed:", *miss)
    assert not missed and tried >= 80
