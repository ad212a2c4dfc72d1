"""Every line of `stoker show workloads` runs as it is: overrides make it smaller and its times shorter, and say where the
server of objects is, and nothing else. What has a dataset is generated, verified and trained, with the order of every epoch proved; what is for checkpoints alone writes
one and reads it; those over S3 have a server of the tests."""
# tier: long
import os
import re
import resource
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from s3_server import S3Server  # noqa: E402
from util import SOURCE, load, stoker  # noqa: E402

BUCKET = "s3pytorchconnector"
OWN = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "S3_", "DLIO_")) and not k.lower().endswith("_proxy")}
# sizes of a model and of its checkpoints; times that a run would wait
SMALLER = {"model.num_layers": 4, "model.transformer.vocab_size": 1024, "model.transformer.hidden_size": 192,
           "model.transformer.ffn_hidden_size": 512, "model.optimization_groups": "[2000,1000,100]",
           "model.layer_parameters": "[5000,20000]", "checkpoint.num_checkpoints_write": 1, "checkpoint.num_checkpoints_read": 1,
           "checkpoint.time_between_checkpoints": 0, "train.computation_time": 0.0005, "evaluation.eval_time": 0.0005}
LARGEST = {"model.model_size_bytes": 400000, "dataset.record_length_bytes_resize": 4096, "train.epochs": 2,
           "train.total_training_steps": 4, "checkpoint.steps_between_checkpoints": 2}


def names():
    found = re.findall(r"^(\w+) +\w+ \w+ +\d+ x ", stoker("show", "workloads").stdout, re.M)
    assert set(found) == {p.stem for p in (SOURCE / "workloads").glob("*.yaml")}, found
    return found


def keys_of(name):
    """What a workload sets itself."""
    lines = stoker("show", "config", name, "-q").stdout.splitlines()
    return {m.group(1): m.group(2) for m in (re.match(r"([\w.]+) +(\S.*?) +built-in/", line) for line in lines) if m}


def smaller(keys):
    """The same job with little data: at least two batches of its own size, in files of its own kind."""
    put = {k: v for k, v in SMALLER.items() if k in keys}
    put.update({k: v for k, v in LARGEST.items() if k in keys and float(keys[k]) > v})
    # a stage of a pipeline has at least one layer
    if "model.num_layers" in put:
        put["model.num_layers"] = max(put["model.num_layers"], int(keys.get("model.parallelism.pipeline", 1)))
    if "dataset.data_folder" not in keys:
        return put
    batch, files, samples = (int(keys.get(k, 1)) for k in ("reader.batch_size", "dataset.num_files_train",
                                                           "dataset.num_samples_per_file"))
    need = put.get("train.total_training_steps", 2) * batch + 1
    put["dataset.num_files_train"] = files = min(files, 4 if samples > 1 else max(8, need))
    put["dataset.num_samples_per_file"] = min(samples, max(8, need // files + 1))
    if "dataset.parquet.columns" not in keys and float(keys["dataset.record_length_bytes"]) > 20000:
        put["dataset.record_length_bytes"] = 20000
        if float(keys.get("dataset.record_length_bytes_stdev", 0)) > 0:
            put["dataset.record_length_bytes_stdev"] = 5000
    return put


def runs(name, folder, s3):
    keys = keys_of(name)
    put = smaller(keys)
    far = keys.get("storage.storage_type") == "s3"
    if far:
        put["storage.storage_options.endpoint_url"] = f"http://localhost:{s3.port}"
        s3.buckets[BUCKET] = {}
    line = [f"{k}={v}" for k, v in put.items()]
    kw = {"cwd": folder, "env": OWN}
    said = ""
    trains = keys["workflow.train"] == "true"
    if "dataset.data_folder" in keys and keys["workflow.generate_data"] == "false":
        said += stoker("generate", name, *line, **kw).stderr
    done = stoker("run", name, *line, "-o", "out", **kw)
    said += done.stderr
    result = load(folder / "out")
    assert result["status"] == "complete", (name, result["status"])
    if "dataset.data_folder" in keys:
        assert "every byte as generated" in stoker("verify", name, *line, **kw).stdout, name
    if trains:
        epochs = result["training"]["epochs"]
        assert len(epochs) == min(int(keys.get("train.epochs", 1)), 2) or "train.total_training_steps" in keys, (name, epochs)
        assert all(e["order_proved"] and e["samples"] >= 2 * int(keys["reader.batch_size"]) for e in epochs), (name, epochs)
    if not trains and keys["workflow.checkpoint"] == "true":
        assert result["checkpoint"]["save"]["each"] and result["checkpoint"]["load"]["each"], name
    if far:
        assert not s3.refused_signatures and s3.requests(op="GetObject") and s3.keys(BUCKET), name
    assert not re.search(r"not a key|\[ERROR\]", said), (name, said)
    return trains


def main():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    trained = 0
    every = sys.argv[1:] or names()
    with S3Server(access="access-key", secret="secret-key", buckets=(BUCKET,)) as s3:
        for name in every:
            with tempfile.TemporaryDirectory() as tmp:
                trained += runs(name, Path(tmp), s3)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{len(every)} of {len(every)} workloads run, {trained} train with their order proved; {used:.0f} s of processor time")


main()
