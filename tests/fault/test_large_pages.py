"""The same runs with pages of 64 KiB, as some kernels of ARM have: a preloaded library (tests/preload/page_64k.c) tells the
process of them. Every store reads the same bytes, every check holds, and what is cached is measured as before."""
# takes 25 s
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, STOKER, load, skip, stoker  # noqa: E402

LIBRARY = pathlib.Path(os.environ.get("STOKER_TOOLS", "build/tests")) / "libpage_64k.so"
if SANITIZED:
    skip("the preloaded library is not built with a sanitizer")
WORDS = ["default", "-q", "-n", "2", "dataset.format=npz", "dataset.num_files_train=48", "dataset.num_files_eval=0", "dataset.record_length_bytes=300000",
         "reader.batch_size=2", "reader.read_threads=2", "train.epochs=2", "train.computation_time=0.001", "workflow.evaluation=false"]
# store, page cache, further keys
CASES = [("posix", "cold_epochs", []), ("posix", "drop_behind", []), ("direct", "keep", []), ("mmap", "cold_epochs", []), ("posix", "keep", ["reader.access=native", "reader.queue_depth=4"]),
         ("io_uring", "keep", ["reader.access=native", "reader.queue_depth=4"]),
         ("direct", "keep", ["workflow.checkpoint=true", "checkpoint.checkpoint_after_epoch=1", "model.model_size=30000000", "checkpoint.randomize_tensor=false"]),
         ("posix", "keep", ["dataset.format=tfrecord", "framework=tensorflow", "reader.data_loader=tensorflow", "dataset.num_samples_per_file=4", "reader.transfer_size=4096"]),
         ("posix", "keep", ["dataset.format=mmap_indexed_binary", "dataset.num_samples_per_file=4"])]
CHECKS = ("bytes", "ledger", "cache", "dataset", "order", "checkpoint")
SAME = CHECKS[2:]  # other programs that read the same device are said in the first two
LARGE = {"LD_PRELOAD": str(LIBRARY.resolve())}


def run(folder, data, out, store, cache, more, env):
    words = [*WORDS, *more, f"storage.store={store}", f"storage.page_cache={cache}", f"dataset.data_folder={data}", f"checkpoint.checkpoint_folder={out}/checkpoints",
             "workflow.generate_data=true", "-o", str(out)]
    done = subprocess.run([os.path.abspath(STOKER), "run", *words], cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (store, cache, more, env, done.stdout[-1500:], done.stderr[-1500:])
    return load(out)


def whole(r, what):
    checks = {v["check"]: v["level"] for v in r["verdicts"]}
    for name in CHECKS:
        assert checks.get(name, "pass") != "fail", (what, name, next(v for v in r["verdicts"] if v["check"] == name))
    assert all(e["order_proved"] for e in r["training"]["epochs"]), what
    return checks


def files(folder):
    return {p.name: p.read_bytes() for p in sorted(pathlib.Path(folder).rglob("*")) if p.is_file() and p.name != "stoker_manifest.json"}


def main():
    told = subprocess.run([sys.executable, "-c", "import os; print(os.sysconf('SC_PAGESIZE'))"], env={**os.environ, **LARGE}, capture_output=True, text=True)
    assert told.stdout == "65536\n", told
    stores = stoker("show", "stores").stdout
    with tempfile.TemporaryDirectory(dir=os.environ.get("STOKER_TEST_DISK", "/var/tmp")) as tmp:
        tmp = pathlib.Path(tmp)
        for i, (store, cache, more) in enumerate(CASES):
            if f"\n{store} " not in "\n" + stores:
                continue
            seen = {}
            for name, env in (("small", {}), ("large", LARGE)):
                r = run(tmp, tmp / f"data-{name}", tmp / f"{name}-{i}", store, cache, more, env)
                seen[name] = (whole(r, (store, cache, more, name)), r)
            levels = [{c: seen[k][0].get(c) for c in SAME} for k in seen]
            assert levels[0] == levels[1], (store, cache, more, levels)
            a, b = files(tmp / "data-small"), files(tmp / "data-large")
            assert a == b and len(a) >= 12, (store, sorted(a), sorted(b))
            print(f"{store}, {cache}, {' '.join(more)}: {len(a)} files, {json.dumps(levels[1])}")
            for name in ("data-small", "data-large"):
                shutil.rmtree(tmp / name)


main()
