"""Logs of real jobs become workloads (`stoker explain -o job.yaml`), these are run and recorded: the run makes the requests of
the job, file by file and size by size. Steps do not compute here: only requests count."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, STOKER, left_out  # noqa: E402

JOBS = pathlib.Path(__file__).parent.parent / "data/jobs"


def call(*args):
    done = subprocess.run([*map(str, args)], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 3), (args, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def main():
    # what starting workers and computing take, of a log that does not change: known to the tenth of a millisecond
    values = json.loads(call(STOKER, "explain", JOBS / "npz-w2-persistent-evaluation.strace.gz", "--json"))["values"]
    for key, want in ("worker_start_s", 0.01185), ("worker_init_s", 0.01459), ("compute_s", 0.02537), ("eval_compute_s", 0.00525):
        assert abs(values[key]["value"] - want) < 1e-4, (key, values[key])
    if SANITIZED:
        return left_out("recording runs: this is a sanitizer build")
    # name, ranks, what the workload must say
    for name, ranks, words in (("hdf5-w0", 1, ("record_length_bytes: 16384", "read_type: memory", "access: recorded")),
                               ("npz-w2-persistent-evaluation", 1, ("persistent_workers: True",)),
                               ("tfrecord-w2", 1, ("num_samples_per_file: 3", "access: recorded")),
                               ("mpi-png-w0", 2, ("format: png",))):
        log = JOBS / f"{name}.strace.gz"
        with tempfile.TemporaryDirectory() as tmp:
            tmp = pathlib.Path(tmp)
            call(STOKER, "explain", log, "-o", tmp / "job.yaml")
            text = (tmp / "job.yaml").read_text()
            had, made, share = re.search(r"# Fidelity: the log has (\d+) reads of .*? The workload makes (\d+) of .*?\n# \(([\d.]+) % of", text).groups()
            assert had == made and share == "100.0", (name, had, made, share)
            for w in words:
                assert w in text, (name, w, text)
            keys = (f"dataset.data_folder={tmp}/data", "dataset.verify_samples=0", "storage.page_cache_files=0",
                    "framework.costs=none", "train.computation_time=0", "reader.preprocess_time=0")
            call(STOKER, "generate", tmp / "job.yaml", *keys)
            call(STOKER, "record", "-o", tmp / "run", "--", STOKER, "run", tmp / "job.yaml", "-n", ranks, *keys, "-o", tmp / "out")
            f = json.loads(call(STOKER, "explain", log, "--fidelity", tmp / "run", "--json"))
            assert f["requests_equal"] == 1 and f["bytes_read"]["log"] == f["bytes_read"]["here"], (name, f)
            print(f"   {name}: {f['reads']['log']:.0f} reads of {f['bytes_read']['log']:.0f} bytes, equal")


main()
