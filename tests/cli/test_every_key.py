"""Every key of docs/config.md is accepted as a plain key=value on the command line, has its effect in `show config`, and
is not said to be unknown or without effect."""
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from recorded_file import recorded  # noqa: E402
from util import SOURCE, left_out, stoker  # noqa: E402

ROW = re.compile(r"^\| `([a-z0-9_.]+)` \| ([^|]*) \| (?:`([^`]*)` )?\| ([^|]*)\|$")

# A value where the type and the range do not say one, or that of the default workload would not go with it.
VALUES = {
    "framework": "pytorch", "framework.costs": "torch-1.13", "dataset.format": "npy", "dataset.num_files_train": "100", "dataset.record_dims": "[7,5]",
    "dataset.record_element_type": "float32", "reader.transformed_record_element_type": "float32",
    "reader.data_loader": "dali", "reader.data_loader_sampler": "index", "reader.batch_size": "2",
    "dataset.num_samples_train": "200", "dataset.num_samples_eval": "100", "dataset.hdf5.num_dset_per_record": "2", "storage.store": "mmap", "storage.storage_root": "/elsewhere",
    "train.total_training_steps": "7", "dataset.hdf5.chunk_dims": "[1,8]", "dataset.hdf5.max_shape": "[64,64]",
    "checkpoint.format": "safetensors", "output.log_file": "my.log", "workflow.profiling": "false",
    "dataset.data_folder": "/elsewhere", "output.metric.exclude_start_steps": "2", "model.parallelism.data": "-1",
    "reader.read_threads": "2", "reader.nodes": "1", "dataset.compression": "zip", "storage.storage_type": "parallel_fs",
    "run.probe_time": "0.5", "dataset.parquet.columns": "[{name: a,dtype: float32}]", "dataset.parquet.partition_by": "null",
}
RECORDS = ["framework=tensorflow", "reader.data_loader=tensorflow", "dataset.format=tfrecord"]
# What has to be set with a key so that it has an effect.
LISTED = ["dataset.format=parquet", "dataset.names=listed", "dataset.num_files_eval=1", f"dataset.data_folder={SOURCE}/tests/data/parquet"]
COMPANIONS = {
    "dataset.names": LISTED, "dataset.num_samples_train": LISTED, "dataset.num_samples_eval": LISTED,
    "reader.queue_depth": ["reader.access=native"],
    "reader.transport": ["reader.data_loader=pytorch"], "reader.drop_last": ["reader.order=distributed"],
    "reader.stick_to_shard": ["reader.data_loader=native_dali", "dataset.format=npy"],
    "reader.pad_last_batch": ["reader.data_loader=native_dali", "dataset.format=npy"],
    "reader.file_shuffle_size": ["reader.data_loader=webdataset"],
    "reader.shuffle_initial": ["reader.data_loader=webdataset"],
    **{f"reader.{key}": ["reader.data_loader=mds"] for key in ("shuffle_block_size", "canonical_nodes")},
    "reader.cache_folder": ["reader.data_loader=mds", "dataset.format=mds", "dataset.num_subfolders_train=0",
                            "dataset.num_subfolders_eval=0"],
    **{f"reader.{key}": ["reader.data_loader=mds"] for key in ("cache_limit", "predownload")},
    "reader.max_pre_download": ["reader.data_loader=litdata"],
    "reader.nodes": ["reader.data_loader=mds"], "reader.shuffle_algorithm": ["reader.data_loader=mds", "reader.canonical_nodes=1"],
    "reader.read_ahead": ["reader.data_loader=native_dali", "dataset.format=npy"],
    "checkpoint.mode": ["model.parallelism.data=4"], "checkpoint.ksm": ["checkpoint.randomize_tensor=false"],
    "dataset.hdf5.num_dset_per_record": ["dataset.format=hdf5", "dataset.record_dims=[8,8]"],
    "model.type": ["workflow.checkpoint=false"],
    "reader.order": ["reader.sample_shuffle=seed"], "reader.interleave": RECORDS,
    "reader.block_length": [*RECORDS, "reader.interleave=calls"],
    **{f"storage.s3.{key}": ["reader.access=object"] for key in ("prefetch_window", "stagger_workers")},
}
# Accepted for DLIO's sake, and said to have no effect.
NO_EFFECT = {"checkpoint.ksm"}
# What switches on the part of a run that keys are for.
SWITCHES = {"checkpoint.": "workflow.checkpoint=true", "model.": "workflow.checkpoint=true",
            "profiling.": "workflow.profiling=true", "dataset.parquet.": "dataset.format=parquet", "reader.parquet_": "dataset.format=parquet",
            "dataset.hdf5.": "dataset.format=hdf5", "dataset.arrow.": "dataset.format=arrow_stream", "storage.s3.": "storage.store=s3"}


def value_of(key, kind, default):
    """A valid value of the key, not its default where there is another."""
    if key in VALUES:
        return VALUES[key]
    if kind.startswith("boolean"):
        return "false" if default == "true" else "true"
    if kind.startswith("choice"):
        choices = kind.partition(": ")[2].split(", ")
        return next((c for c in choices if c != default), choices[0])
    if kind.startswith("list of whole numbers"):
        return "[3,4]"
    if kind.startswith("list of texts"):
        return "[a,b]"
    if kind.startswith("time"):
        return "0.25"
    if kind.startswith("map"):
        return "{a: 1}"
    if kind.startswith("text"):
        return "words"
    number = re.match(r"(whole number|number)(?: \([^)]*\))?(?:, (?:at least (\S+)|(\S+) to \S+))?$", kind)
    assert number, f"{key}: what is '{kind}'?"
    least = float(number.group(2) or number.group(3) or 0)
    return "%.0f" % (least + 1 if least == float(default or 0) else least)


def rows():
    """(key, type, default) of every table of docs/config.md."""
    text = (SOURCE / "docs" / "config.md").read_text()
    found = []
    for line in text.splitlines():
        row = ROW.match(line)
        assert row or not line.startswith("| `"), f"a row of docs/config.md that this test cannot read: {line}"
        if row:
            found.append((row.group(1), row.group(2).strip(), row.group(3)))
    return found, re.findall(r"^\*\*([a-z_]+)\*\*: .*?( \(shim\))?\.$", text, re.M)


def companions(key, shims):
    store = re.match(r"storage\.([a-z_]+)\.", key)
    if store:
        return [f"storage.store={store.group(1)}{'+posix' if store.group(1) in shims else ''}", *COMPANIONS.get(key, [])]
    for section, switch in SWITCHES.items():
        if key.startswith(section):
            return [*COMPANIONS.get(key, []), switch]
    return COMPANIONS.get(key, [])


def main():
    keys, stores = rows()
    shims = {name for name, shim in stores if shim}
    here = stoker("show", "stores").stdout
    wrong = []

    # the label of a profile, which `show config` prints, is one of its names
    label = stoker("show", "config", "default", "framework.costs=torch-1.13").stdout
    VALUES["framework.costs"] = re.search(r"^framework\.costs +(\S+)", label, re.M).group(1)
    assert len(keys) > 150 and sum(k.count(".") == 2 and k.startswith("storage.") for k, _, _ in keys) > 15, len(keys)
    for name, _ in stores:
        if not re.search(rf"^{name} ", here, re.M):
            left_out(f"the keys of the store {name}, which is not in this build")
            keys = [k for k in keys if not k[0].startswith(f"storage.{name}.")]
    file = tempfile.NamedTemporaryFile()
    file.write(recorded(1, [(64, 1, [5000] * 64, []), (8, 1, [5000] * 8, [])]))
    file.flush()
    COMPANIONS["dataset.sizes"] = [f"dataset.recorded_file={file.name}"]
    COMPANIONS["dataset.recorded_file"] = ["dataset.sizes=recorded"]
    VALUES["dataset.recorded_file"] = file.name
    asked, parts = tempfile.NamedTemporaryFile(), [(64, 1, [5000] * 64, []), (8, 1, [5000] * 8, [])]
    asked.write(recorded(1, parts, *([each * n for n, *_ in parts] for each in ([[], [(0, 5000)]], [100, 900]))))
    asked.flush()
    COMPANIONS["reader.recorded_work"] = [f"dataset.recorded_file={asked.name}", "reader.access=recorded"]
    for key, kind, default in keys:
        value = value_of(key, kind, default)
        done = stoker("show", "config", "default", *companions(key, shims), f"{key}={value}", status=None)
        line = next((text for text in done.stdout.splitlines() if text.split()[:1] == [key]), "")
        if done.returncode != 0:
            wrong.append(f"{key}={value}: {done.stderr.strip()}")
        elif key not in NO_EFFECT and re.search(rf"\b{re.escape(key)} (is not a key|has no effect)|storage\.\w+ has no effect", done.stderr):
            wrong.append(f"{key}={value}: {done.stderr.strip()}")
        elif not line.endswith("command line") or value.replace(",", ", ") not in line:
            wrong.append(f"{key}={value}: not in 'show config': '{line}'")
    assert not wrong, f"{len(wrong)} of {len(keys)} keys:\n" + "\n".join(wrong)
    print(f"{len(keys)} keys set")


if __name__ == "__main__":
    main()
