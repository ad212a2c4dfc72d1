"""Figures, not a test: what a run over many shards takes before its first step, and its memory.

    python3 tests/bench/shard_start.py build/stoker [SHARDS [SAMPLES]]

Shards of SAMPLES small samples (10,000 of 1,000) lie in memory (/dev/shm, or TMPDIR). A run makes one step without computation,
so its processor time is that of starting, of the proof and of the results; beside it stands that of a run of ten shards.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
STOKER = sys.argv[1] if len(sys.argv) > 1 else "build/stoker"
os.environ["STOKER"] = STOKER
from util import tiny  # noqa: E402

SHARDS, SAMPLES = (int(x) for x in (sys.argv[2:4] + ["10000", "1000"][len(sys.argv[2:4]):]))
ORDERS = {"webdataset": [("in turn", {})], "litdata": [("in turn", {}), ("shuffled", dict(reader__sample_shuffle="seed"))],
          "mds": [("in turn", {})] + [(x, dict(reader__sample_shuffle="seed", reader__shuffle_algorithm=x))
                                      for x in ("py1e", "py1s", "py1br", "py2s", "naive")]}


def keys_of(fmt, files, **keys):
    loader = {} if fmt == "webdataset" else dict(reader__data_loader=fmt)
    return dict(fmt=fmt, framework="pytorch", files=files, dataset__num_samples_per_file=SAMPLES, dataset__record_length_bytes=64,
                reader__batch_size=8, reader__read_threads=1, train__computation_time=0, train__total_training_steps=1,
                dataset__verify_samples=0, run__probe="false", **loader, **keys)


def run(data, out, fmt, files, **keys):
    argv = [STOKER, "run", *map(str, tiny(data, out, **keys_of(fmt, files, workflow__generate_data="false", **keys)))]
    before = os.times()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return cpu, json.loads((out / "result.json").read_text())["memory"]["peak_rss_bytes"] / 2**20


place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", place)) as tmp:
    print(f"{SHARDS:,} shards of {SAMPLES:,} samples: processor time of a run of one step (of ten shards), most memory")
    for fmt, orders in ORDERS.items():
        few, many = pathlib.Path(tmp, "few"), pathlib.Path(tmp, "many")
        for folder, files in ((few, 10), (many, SHARDS)):
            subprocess.run([STOKER, "generate", *map(str, tiny(folder, None, **keys_of(fmt, files)))], check=True,
                           stdout=subprocess.DEVNULL)
        for name, keys in orders:
            small, _ = run(few, pathlib.Path(tmp, "out"), fmt, 10, **keys)
            cpu, memory = run(many, pathlib.Path(tmp, "out"), fmt, SHARDS, **keys)
            print(f"{fmt:11} {name:9} {cpu:6.2f} s ({small:.2f} s)  {memory:7.1f} MiB", flush=True)
        shutil.rmtree(few)
        shutil.rmtree(many)
