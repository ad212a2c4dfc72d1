"""Every format of this version: generate, verify, train and evaluate, with one and many samples a file,
one and several ranks, no and several workers, both access patterns. And every shipped workload whose
format is there, at toy size."""
# tier: long
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, load, stoker, tiny  # noqa: E402


def formats():
    return [line.split()[0] for line in stoker("show", "formats").stdout.splitlines() if line[:1].isalpha()]


def matrix(fmt, tmp):
    runs = 0
    for samples in (1, 16):
        data = tmp / f"{fmt}{samples}"
        keys = dict(fmt=fmt, files=16, dataset__num_samples_per_file=samples, dataset__num_files_eval=4,
                    dataset__record_length_bytes=1024, workflow__evaluation="true", reader__batch_size_eval=1,
                    train__computation_time=0, evaluation__eval_time=0)
        made = json.loads(stoker("generate", "--json", *tiny(data, None, **keys)).stdout)
        assert (made["files_written"], made["files_that_existed"]) == (20, 0), made
        same = json.loads(stoker("verify", "--json", *tiny(data, None, **keys)).stdout)
        assert (same["outcome"], same["files_compared"]) == ("every byte as generated", 20), same
        stoker("verify", data)
        for ranks in (1, 4):
            for workers in (0, 4):
                for access in ("framework", "native"):
                    out = tmp / "out"
                    stoker("run", "-n", ranks, *tiny(
                        data, out, workflow__generate_data="false", reader__read_threads=workers,
                        reader__access=access, reader__decode="verify", reader__sample_shuffle="seed", **keys))
                    result = load(out)
                    epoch = result["training"]["epochs"][0]
                    assert epoch["order_proved"], (fmt, samples, ranks, workers)
                    assert epoch["samples"] == 16 * samples, epoch
                    runs += 1
        shutil.rmtree(data)
    print(f"   {fmt}: {runs} runs verified")


def workloads(known, tmp):
    done, loaders = [], ("pytorch", "tensorflow")
    for line in stoker("show", "workloads").stdout.splitlines():
        name = line.split()[0]
        config = stoker("show", "config", name, "-q", status=None)
        fmt = re.search(r"^dataset\.format\s+(\S+)", config.stdout, re.M)
        train = re.search(r"^workflow\.train\s+(\S+)", config.stdout, re.M)
        framework = re.search(r"^framework\s+(\S+)", config.stdout, re.M)
        own = framework.group(1) if framework and framework.group(1) in loaders else "pytorch"
        if not fmt or fmt.group(1) not in known or (train and train.group(1).lower() == "false"):
            continue
        samples = int(re.search(r"^dataset\.num_samples_per_file\s+(\d+)", config.stdout, re.M).group(1))
        files = 8 if samples < 8 else 1
        toy = [f"framework={own}", f"reader.data_loader={own}", f"dataset.data_folder={tmp / 'w' / name}",
               f"dataset.num_files_train={files}", "dataset.num_files_eval=0", "workflow.evaluation=false",
               "dataset.num_subfolders_train=0", "dataset.num_subfolders_eval=0",
               f"dataset.num_samples_per_file={min(samples, 64)}", "dataset.record_length_bytes=4096",
               "dataset.record_length_bytes_stdev=0", "reader.batch_size=2", "train.epochs=1",
               "train.total_training_steps=-1", "train.computation_time=0", "reader.preprocess_time=0",
               "workflow.checkpoint=false", "workflow.profiling=false", "workflow.generate_data=true",
               "storage.storage_type=local_fs", "storage.storage_root=/", "dataset.record_dims=[]",
               "dataset.compression=none", "dataset.keep_files=false"]
        stoker("run", name, "-q", "-o", tmp / "out", *toy)
        assert load(tmp / "out")["training"]["epochs"][0]["order_proved"]
        done.append((name, own))
    for loader in loaders:
        names = [name for name, own in done if own == loader]
        print(f"   {len(names)} workloads at toy size with {loader}: {', '.join(names)}")
        assert names, loader


def main():
    known = formats()
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        for fmt in known:
            if not SANITIZED or fmt == known[0]:
                matrix(fmt, tmp)
        workloads(known, tmp)


if __name__ == "__main__":
    main()
