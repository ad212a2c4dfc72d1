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


def contradictions(out):
    """What an audit says of a run that nobody changed."""
    return [f for f in json.loads(stoker("audit", "--json", out, status=None).stdout)["results"][0]["findings"]
            if f["level"] == "fail" and f["check"] in ("figures", "files")]


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
    assert not contradictions(out), contradictions(out)


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

    # fewer samples than ranks: DLIO's evaluation of 0 steps, and without compat.dlio nothing that could be done
    few = {"dataset__num_samples_per_file": 1, "workflow__train": "false"}
    run(f"{tmp}/few", f"{tmp}/fewer", "-n", 3, **few)
    no_step(f"{tmp}/fewer", 3, trained=False)
    for key, value in (("compat__dlio", "false"), ("dataset__num_files_eval", 0)):
        done = stoker("run", "-n", 3, *tiny(f"{tmp}/few", f"{tmp}/none", **{**ONE_FILE, **few, key: value}), status=2)
        assert "nothing else is to be done" in done.stderr, done.stderr
    for command in ("generate", "verify"):
        stoker(command, *tiny(f"{tmp}/made", None, **{**ONE_FILE, **few, "dataset__num_files_eval": 0}))
    shown = stoker("show", "config", "default", *tiny(f"{tmp}/made", None, **{**ONE_FILE, **few, "dataset__num_files_eval": 0})[2:])
    assert "nan" not in shown.stdout.lower(), shown.stdout

    # one and two steps of what an audit must know: a loader that ends a step early, ranks that all read the first shard, and
    # checkpoints of two files
    for name, ranks, keys in (
            ("early", 1, {"reader__data_loader": "synthetic", "dataset__num_files_eval": 2}),
            ("shards", 2, {"reader__data_loader": "native_dali", "fmt": "tfrecord", "dataset__num_files_eval": 2, "files": 4}),
            ("parts", 2, {"reader__data_loader": "tensorflow", "framework": "tensorflow", "workflow__checkpoint": "true",
                          "checkpoint__steps_between_checkpoints": 1, "model__model_size_bytes": 1000,
                          "checkpoint__checkpoint_folder": f"{tmp}/saved"})):
        run(f"{tmp}/data-{name}", f"{tmp}/{name}", "-n", ranks, **{"dataset__num_samples_per_file": 1, **keys})
        assert load(f"{tmp}/{name}")["status"] == "complete" and not contradictions(f"{tmp}/{name}"), contradictions(f"{tmp}/{name}")

    # of training too few files are left for a step
    for ranks in (1, 2):
        done = stoker("run", "-n", ranks, *tiny(f"{tmp}/npz", f"{tmp}/none", **{**ONE_FILE, "reader__batch_size": 5}), status=2)
        assert "no training step is possible with compat.dlio" in done.stderr, done.stderr
