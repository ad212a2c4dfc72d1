#!/usr/bin/env python3
"""A phase without a step: with compat.dlio files are left out until evaluation has none, and DLIO makes an evaluation of 0
steps then. The run must end well with all its results, and say so; without compat.dlio the samples fill steps. A training
without a step is refused, before anything is read."""
import json
import sys
import tempfile

sys.path.insert(0, __file__.rsplit("/", 2)[0])
from util import load, stoker, tiny

ONE_FILE = {"dataset__num_samples_per_file": 2, "dataset__num_files_eval": 1, "workflow__evaluation": "true",
            "reader__batch_size": 1, "evaluation__eval_time": 0.001, "compat__dlio": "true"}


def run(data, out, *args, **keys):
    return stoker("run", *args, *tiny(data, out, **{**ONE_FILE, **keys}))


def no_step(out, ranks, trained=True):
    """What a result says of an evaluation without a step."""
    r, summary = load(out), load(out, "summary.json")["metric"]
    e = r["evaluation"]
    assert e["steps"] == 0 and all(x["samples"] == 0 and x["au_percent"] == 0 for x in e["epochs"]), e
    assert summary["eval_au_percentage"] == [0] * ranks, summary
    assert summary["eval_throughput_samples_per_second"] == [0] * ranks, summary
    assert summary["eval_au_meet_expectation"] == "fail", summary
    levels = {v["check"]: v["level"] for v in r["verdicts"]}
    assert levels["evaluation"] == "warn", levels
    # what evaluations read, and from where, cannot be told of none
    assert not {"eval-bytes", "eval-cache", "eval-client"} & levels.keys(), levels
    assert ("training" in r) == trained, r.keys()
    log = open(f"{out}/dlio.log").read()
    assert "Starting eval - 0 steps expected" in log and "Ending eval - 0 steps completed" in log, log
    figures = [f for f in json.loads(stoker("audit", "--json", out, status=None).stdout)["results"][0]["findings"]
               if f["level"] == "fail" and f["check"] in ("figures", "files")]
    assert not figures, figures


with tempfile.TemporaryDirectory(prefix="stoker-steps-") as tmp:
    n = 0
    for loader, framework, fmt in (("pytorch", "pytorch", "npz"), ("tensorflow", "tensorflow", "npz"),
                                   ("tensorflow", "tensorflow", "tfrecord"), ("dali", "pytorch", "npz"),
                                   ("synthetic", "pytorch", "npz")):
        for ranks, workers in ((1, 0), (1, 1), (2, 0), (2, 1)):
            n += 1
            run(f"{tmp}/{fmt}", f"{tmp}/out{n}", "-n", ranks, fmt=fmt, framework=framework, reader__data_loader=loader,
                reader__read_threads=workers)
            no_step(f"{tmp}/out{n}", ranks)
    run(f"{tmp}/npz", f"{tmp}/alone", "-n", 2, workflow__train="false", run__trace="both")
    no_step(f"{tmp}/alone", 2, trained=False)

    # the same files without compat.dlio: both samples are read
    run(f"{tmp}/npz", f"{tmp}/whole", compat__dlio="false")
    e = load(f"{tmp}/whole")["evaluation"]
    assert e["steps"] == 2 and e["epochs"][0]["samples"] == 2, e

    # none at all: evaluation is turned off, with a warning
    run(f"{tmp}/npz", f"{tmp}/off", dataset__num_files_eval=0)
    r = load(f"{tmp}/off")
    assert "evaluation" not in r and "training" in r and r["warnings"], r.keys()

    # of training too few files are left for a step
    for ranks in (1, 2):
        done = stoker("run", "-n", ranks, *tiny(f"{tmp}/npz", f"{tmp}/none", **{**ONE_FILE, "reader__batch_size": 5}), status=2)
        assert "no training step is possible with compat.dlio" in done.stderr, done.stderr
