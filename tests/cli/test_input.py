"""What strangers type: a table of wrong inputs, each with the first words of its sentence, which say what to do; units and
the frameworks' names through a whole run; --data for folders of every kind; all errors at once."""
import json
import os
import pathlib
import random
import shlex
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SOURCE, load, stoker  # noqa: E402

# Override of the workload "default" -> how the sentence begins, after "stoker: ".
WRONG = {
    # sizes, rates, times, counts
    "record_length_bytes=40K": "command line: dataset.record_length_bytes: write 40KB (powers of 1000) or 40KiB",
    "record_length_bytes=40Kb": "command line: dataset.record_length_bytes: write 5KB if bits are meant",
    "record_length_bytes=40XB": "command line: dataset.record_length_bytes: write it like 64KiB or 40KB",
    "record_length_bytes=40MB/s": "command line: dataset.record_length_bytes: write a size",
    "record_length_bytes=-40KB": "command line: dataset.record_length_bytes: -40KB is below the minimum 1",
    "record_length_bytes=0KB": "command line: dataset.record_length_bytes: 0KB is below the minimum 1",
    "record_length_bytes=5000PB": "command line: dataset.record_length_bytes: 5000PB is above the maximum",
    "record_length_bytes=1e999KB": "command line: dataset.record_length_bytes: '1e999KB' is too large",
    "record_length_bytes=nan": "command line: dataset.record_length_bytes: nan is not a finite number",
    "record_length_bytes=nanKB": "command line: dataset.record_length_bytes: 'nanKB' is not a number, such as 65536",
    "record_length_bytes=KB": "command line: dataset.record_length_bytes: 'KB' is not a number, such as 65536, 64KiB",
    "record_length_bytes=2s": "command line: dataset.record_length_bytes: write a size, such as 64KiB or 40KB: '2s'",
    "record_length_bytes=large": "command line: dataset.record_length_bytes: 'large' is not a number, such as",
    "reader.transfer_size=0.3B": "command line: reader.transfer_size: 0.3B is not a whole number of bytes",
    "reader.transfer_size=256K": "command line: reader.transfer_size: write 256KB (powers of 1000) or 256KiB",
    "reader.transfer_size='256'": "command line: reader.transfer_size: '256' is text, but a whole number is needed",
    "model.model_size_bytes=1TB/h": "command line: model.model_size_bytes: write it like 64KiB or 40KB: 'TB/h'",
    "checkpoint.stage_rate=1GB": "command line: checkpoint.stage_rate: write 1GB/s: this key is a rate",
    "checkpoint.stage_rate=10Gbps": "command line: checkpoint.stage_rate: write 1.25GB/s if bits are meant",
    "checkpoint.stage_rate=fast": "command line: checkpoint.stage_rate: 'fast' is not a number, such as 100e6",
    "computation_time=30": None,
    "computation_time=5m": "command line: train.computation_time: write 5min for minutes or 5ms for milliseconds",
    "computation_time=30KB": "command line: train.computation_time: write a time, such as 0.03 or 30ms",
    "computation_time=soon": "command line: train.computation_time: 'soon' is not a number, such as",
    "computation_time={mean: 30mss}": "command line: train.computation_time.mean: write it like 0.03 or 30ms",
    "computation_time={mean: 30ms, stdev: -5ms}": "command line: train.computation_time.stdev: -5ms is below",
    "computation_time={mean: 30ms, std: 5ms}": "command line: train.computation_time: 'std' is not a field",
    "computation_time={type: gamma, shape: 2s, scale: 1}": "command line: train.computation_time.shape: write a plain",
    "computation_time={type: gauss, mean: 1}": "command line: train.computation_time: 'gauss' is not a distribution",
    "run.watchdog=-1s": "command line: run.watchdog: -1s is below the minimum 0",
    "run.watchdog=forever": "command line: run.watchdog: 'forever' is not a number, such as 0.03 or 30ms",
    "num_files_train=10k": "command line: dataset.num_files_train: write 10000: files are counted without a unit",
    "num_files_train=1.5M": "command line: dataset.num_files_train: write 1500000: files are counted",
    "num_files_train=10 files": "command line: dataset.num_files_train: write a plain number, without 'files'",
    "num_files_train='40,000'": "command line: dataset.num_files_train: write the number without commas",
    "num_files_train=-1": "command line: dataset.num_files_train: -1 is below the minimum 0",
    "num_files_train=1.5": "command line: dataset.num_files_train: 1.5 is not a whole number",
    "num_files_train=0": "command line: dataset.num_files_train is 0 while workflow.train is on",
    "batch_size=0": "command line: reader.batch_size: 0 is below the minimum 1",
    "batch_size=auto": "command line: reader.batch_size: 'auto' is not a whole number",
    "batch_size=4KB": "command line: reader.batch_size: write a plain number of samples: '4KB' is a size",
    "batch_size=32s": "command line: reader.batch_size: write a plain number of samples: '32s' is a time",
    "batch_size=[1,2]": "command line: reader.batch_size: a list is not a whole number",
    "batch_size=1,2": "command line: 'batch_size=1,2': ",
    "batch_size=": "command line: reader.batch_size: '' is not a whole number",
    "batch_size": "'batch_size' is neither an option nor an override (key=value)",
    "metric.au=90": "command line: metric.au: write 0.9 for 90 %: 90 is above the maximum 1",
    "metric.au=120%": "command line: metric.au: 120% is above the maximum 1",
    "metric.au=high": "command line: metric.au: 'high' is not a number",
    "metric.au=90KB": "command line: metric.au: write a share, such as 0.9 or 90%",
    "epochs=0": "command line: train.epochs: 0 is below the minimum 1",
    "epochs=ten": "command line: train.epochs: 'ten' is not a whole number",
    "epochs=1e9": "command line: train.epochs: 1e9 is above the maximum 1000000",
    "seed=-1": "command line: train.seed: -1 is below the minimum 0",
    "seed=99999999999999999999": "command line: train.seed: 99999999999999999999 is above the maximum",
    # booleans and choices
    "persistent_workers=maybe": "command line: reader.persistent_workers: 'maybe' is not a boolean",
    "pin_memory=2": "command line: reader.pin_memory: 2 is not a boolean",
    "shuffle=yes please": "command line: reader.sample_shuffle: 'yes please' is not one of off, seed, random",
    "shuffle=1000": "set reader.sample_shuffle=seed, and reader.shuffle_size to the samples",
    "framework=torch": "did you mean pytorch? command line: framework: 'torch' is not one of tensorflow, pytorch",
    "framework=jax": "command line: framework: 'jax' is not one of tensorflow, pytorch",
    "reader.data_loader=torch": "did you mean pytorch? command line: reader.data_loader 'torch' is not one of pytorch",
    "reader.order=shuffled": "command line: reader.order: 'shuffled' is not one of stoker, dlio, distributed",
    "storage.page_cache=off": "command line: storage.page_cache: 'off' is not one of keep, cold, cold_epochs",
    "storage.page_cache=cold_epoch": "did you mean cold_epochs? command line: storage.page_cache: 'cold_epoch' is not",
    "format=jpg": "did you mean jpeg? command line: dataset.format 'jpg' is not one of npz",
    "format=rosbag": "command line: dataset.format 'rosbag' is not one of npz, hdf5",
    "dataset.compression=brotli": "command line: dataset.compression: 'brotli' is not one of none, gzip",
    # names
    "num_wrokers=4": "did you mean 'reader.read_threads'? ",
    "num_worker=4": "did you mean 'reader.read_threads'? ",
    "reader.bach_size=4": "did you mean 'reader.batch_size'? ",
    "reader.batchsize=4": "did you mean 'reader.batch_size'? ",
    "train.epoch=4": "did you mean 'train.epochs'? ",
    "dataset.nun_files_train=4": "did you mean 'dataset.num_files_train'? ",
    "raeder.batch_size=4": "did you mean 'reader.batch_size'? ",
    "checkpoint.folder=/x": "did you mean 'checkpoint.checkpoint_folder'? ",
    "frobnicate=4": "command line: 'frobnicate=4': 'frobnicate' is not in the configuration",
    "access=native": "write one of reader.access, checkpoint.access: ",
    "verify=true": "write checkpoint.verify: 'verify' alone is not a key",
    "buffer_size=1000": "set reader.prefetch_size (batches) for the buffer of prefetch, or reader.shuffle_size",
    "world_size=8": "use -n N for the number of accelerators",
    "num_gpus=8": "use -n N for the number of accelerators",
    "global_batch_size=256": "set reader.batch_size to the batch of one accelerator",
    "steps_per_epoch=100": "set dataset.num_files_train for the length of an epoch",
    "collate_fn=f": "set reader.preprocess_time to the time it takes",
    "sampler=x": "set reader.order=distributed or random",
    "num_samples=1000": "set dataset.num_files_train and dataset.num_samples_per_file",
    "drop_last=False": "leave it out: a short batch at the end of an epoch is always dropped",
    "last_batch_policy=DROP": "leave it out: a short batch at the end of an epoch is dropped",
    "cache=true": "set reader.read_type=memory to keep files open",
    "prefetch_factor=two": "write a whole number of batches per worker",
    "prefetch_factor=-1": "write a whole number of batches per worker",
    "~reader.nothing": "command line: '~reader.nothing': ",
    "+reader.batch_size=4": "command line: '+reader.batch_size=4': 'workload.reader.batch_size' already exists",
    # rules across keys
    "batch_size=65": "command line: 64 training samples (64 files of 1) do not make one step of reader.batch_size 65",
    "reader.queue_depth=4": "command line: reader.queue_depth 4 needs reader.access native",
    "data_folder=/": "command line: dataset.data_folder is '/', the root of all files",
    "dataset.record_dims=[4,-1]": "command line: dataset.record_dims: -1 is below the minimum 1",
    "dataset.record_dims=4": "command line: dataset.record_dims: a list such as [4, 4] is needed",
    "dataset.file_prefix=a/b": "command line: dataset.file_prefix 'a/b' contains a slash",
    "train={epochs: 2": "command line: 'train={epochs: 2': ",
    "train=2": "command line: train is a section, a map of keys, not a whole number",
}


def sentences(done):
    return [line[8:] for line in done.stderr.splitlines() if line.startswith("stoker: ")]


def wrong_inputs():
    bad = []
    for override, begins in WRONG.items():
        done = stoker("show", "config", "default", override, status=None)
        said = sentences(done)
        print(f"   {override:42} {said[0] if said else '(accepted)'}")
        if begins is None:
            continue
        if done.returncode != 2 or len(said) != 1 or not said[0].startswith(begins):
            bad.append(f"{override}: status {done.returncode}: {said}, not: {begins}")
    assert not bad, "\n".join(bad)
    print(f"{len(WRONG)} wrong inputs")


def all_at_once(tmp):
    """Every error of a file and a command line in one attempt, and no more than 20 lines."""
    bad = tmp / "bad.yaml"
    bad.write_text("framework: torch\nmodel: {name: m}\ndataset:\n  num_files_train: many\n  record_length_bytes: 40K\n"
                   "dataloader:\n  num_workers: -1\n  shuffle: maybe\ntrain:\n  computation_time: 5m\n  world_size: 8\n")
    done = stoker("run", bad, "batch_size=0", "reader.bach_size=4", status=2)
    said = sentences(done)
    for n, line in enumerate((1, 4, 5, 7, 8, 10, 11)):
        assert any(f"bad.yaml: line {line}" in s for s in said), (line, said)
    assert len(said) == 9, said
    assert any(s.startswith("did you mean 'reader.batch_size'?") for s in said), said
    done = stoker("run", "default", *[f"reader.k{i}=1" for i in range(40)], status=2)
    said = sentences(done)
    assert len(said) == 20 and said[-1] == "and 21 more errors in the workload", said


def walk(tmp):
    """A job of 40 KB images in the words of a DataLoader, on generated files and on what the folder itself says."""
    data, out = tmp / "data", tmp / "out"
    stoker("generate", "default", "--data", data, "num_files=96", "format=npy", "sample_size=40KB", "num_files_eval=0")
    # the workload is not named: no evaluation is tried without files for it
    stoker("run", "--data", data, "-o", out, "num_workers=4", "prefetch_factor=3", "batch_size=8", "shuffle=True",
           "pin_memory=True", "persistent_workers=True", "drop_last=True", "num_epochs=2", "compute_time=2ms", "seed=7")
    result = load(out)
    value = {k: v["value"] for k, v in result["configuration"].items()}
    want = {"dataset.num_files_train": 96, "dataset.format": "npy", "dataset.record_length_bytes": 40000,
            "dataset.data_folder": str(data), "reader.read_threads": 4, "reader.prefetch_size": 12, "reader.batch_size": 8,
            "reader.sample_shuffle": "seed", "train.epochs": 2, "train.seed": 7, "workflow.evaluation": False}
    assert all(value[k] == v for k, v in want.items()), {k: value[k] for k in want}
    assert result["warnings"] == [], result["warnings"]
    notes = " ".join(result["notes"])
    for name in ("num_workers", "prefetch_factor", "batch_size", "shuffle", "num_epochs", "compute_time", "drop_last"):
        assert name in notes, (name, notes)
    config = next(v for v in result["verdicts"] if v["check"] == "config")
    assert config["level"] == "pass" and "num_workers is read as reader.read_threads=4" in str(config["facts"]), config
    # a result with units in it is as sound as any
    audit = stoker("audit", "--json", out, status=None)
    checks = {f["check"] for f in json.loads(audit.stdout)["results"][0]["findings"]}
    assert not checks & {"config", "identity", "figures"}, audit.stdout
    # what is typed wins, and is named
    done = stoker("show", "config", "--set", "--data", data, "num_files_train=50")
    assert "dataset.num_files_train=50 is used, not 96 as in --data" in done.stderr, done.stderr
    # a folder that DLIO wrote says less: the names, and what the size of a file makes the size of a sample
    (data / "stoker_manifest.json").unlink()
    done = stoker("show", "config", "--set", "--data", data)
    lines = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines() if len(line.split()) > 1}
    assert lines["dataset.num_files_train"] == "96" and lines["dataset.format"] == "npy", lines
    assert lines["dataset.record_length_bytes"] == str(200 * 200), lines
    stoker("run", "--data", data, "-o", tmp / "out2", "batch_size=8", "epochs=1", "compute_time=0")
    for folder, begins in ((data / "train", "name the folder above it"), (tmp / "none", "generate the dataset first"),
                           (tmp / "bare", "name the folder of a dataset: none of the 2 files"),
                           (tmp / "empty", "generate the dataset first")):
        if folder.name in ("bare", "empty"):
            folder.mkdir()
        for name in ("a.txt", "b") if folder.name == "bare" else ():
            (folder / name).write_text("x")
        done = stoker("run", "--data", folder, status=2)
        assert sentences(done)[0].startswith(begins), done.stderr


def own_files(tmp):
    """Somebody's own images: the commands of the error make files of their number and size, and run on them."""
    rng = random.Random(1)
    for c in range(3):
        (tmp / f"own/n{c}").mkdir(parents=True)
        for i in range(20):
            (tmp / f"own/n{c}/x_{i}.JPEG").write_bytes(b"x" * rng.randint(30000, 50000))
    (tmp / "own/labels.txt").write_text("x")
    said = sentences(stoker("run", "--data", tmp / "own", "num_workers=2", "batch_size=5", "compute_time=1ms", status=2))[0]
    assert "60 jpeg files of 3" in said and "in 3 folders" in said and "n" in said, said
    commands = said.partition(" (--data: ")[0].partition(": ")[2]
    generate, run = [shlex.split(c)[1:] for c in commands.split(" && ")]
    assert "num_workers=2" in run and "batch_size=5" in run, run
    assert run[run.index("--data") + 1] == generate[generate.index("--data") + 1] == str(tmp / "own-stoker"), commands
    stoker(*generate)
    stoker(*run, "epochs=1", "-o", tmp / "out3")
    result = load(tmp / "out3")
    assert result["status"] == "complete"
    mean = sum(p.stat().st_size for p in (tmp / "own").rglob("*.JPEG")) / 60
    twin = [p.stat().st_size for p in (tmp / "own-stoker/train").rglob("*.jpeg")]
    assert abs(sum(twin) / len(twin) / mean - 1) < 0.05, (sum(twin) / len(twin), mean)
    # its files say the same as the files in which it says it
    found = json.loads(stoker("audit", "--json", tmp / "out3", status=None).stdout)["results"][0]["findings"]
    assert not {f["check"] for f in found} & {"identity", "figures"}, found
    assert len(list((tmp / "own-stoker").rglob("*.jpeg"))) == 60 + 8  # and those for evaluation of the workload
    own_workload(tmp)


def own_workload(tmp):
    """The commands name the workload, the accelerators and folders as they were typed; --small writes no file among one's own."""
    own = tmp / "own"
    job = tmp / "my job.yaml"
    job.write_text("framework: pytorch\nmodel: {name: my_job}\nreader: {data_loader: pytorch, batch_size: 5}\n"
                   "train: {epochs: 2, computation_time: 0.001}\nworkflow: {train: True}\n")
    said = sentences(stoker("run", job, "-n", 2, "--data", f"{own}/", "num_workers=2", status=2))[0]
    generate, run = [shlex.split(c)[1:] for c in said.partition(" (--data: ")[0].partition(": ")[2].split(" && ")]
    assert generate[:2] == ["generate", str(job)] and run[:2] == ["run", str(job)], said
    assert run[run.index("-n") + 1] == "2" and "storage.page_cache=cold_epochs" in run, said
    said = sentences(stoker("run", job, "-n", 2, "--data", tmp / "no such", status=2))[0]
    first = shlex.split(said.partition(" (--data: ")[0].partition(": ")[2])[1:]
    assert first == ["generate", str(job), "--data", str(tmp / "no such")], said
    before = sorted(own.rglob("*"))
    said = sentences(stoker("run", job, "--small", f"dataset.data_folder={own}", status=2))[0]
    assert f"dataset.data_folder={own}-stoker" in said and "60 jpeg files" in said, said
    assert sorted(own.rglob("*")) == before


def shipped():
    """No workload that DLIO ships warns of its sections that are switched off."""
    for path in sorted((SOURCE / "workloads").glob("*.yaml")):
        done = stoker("show", "config", path, status=None)
        assert "no effect without" not in done.stderr, (path, done.stderr)


def main():
    wrong_inputs()
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        all_at_once(tmp)
        walk(tmp)
        own_files(tmp)
    shipped()


if __name__ == "__main__":
    main()
