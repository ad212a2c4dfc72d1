"""The built-in workloads of Parquet files run as they are but for their sizes; what they read is verified."""
# tier: long
import os
import resource
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from s3_server import S3Server  # noqa: E402
from util import load, stoker, tiny  # noqa: E402


def main():
    lines = {line.split()[0]: line for line in stoker("show", "workloads").stdout.splitlines()}
    for name in ("dlrm_b200", "dlrm_mi355", "dlrm_datagen", "flux_b200", "flux_mi355", "flux_datagen"):
        assert not lines[name].endswith(" no"), lines[name]
    with tempfile.TemporaryDirectory() as tmp:
        small = {"dlrm": ["dataset.num_files_train=4", "dataset.num_samples_per_file=9000"],
                 "flux": ["dataset.num_files_train=2", "dataset.num_samples_per_file=36"]}
        for model, sizes in small.items():
            folder = Path(tmp) / model
            sizes = [*sizes, f"dataset.data_folder={folder}"]
            stoker("generate", f"{model}_datagen", *sizes)
            assert "every byte as generated" in stoker("verify", folder).stdout
            for kind in ("b200", "mi355"):
                out = Path(tmp) / f"{model}-{kind}"
                stoker("run", f"{model}_{kind}", *sizes, "train.computation_time=0.001", f"hydra.run.dir={out}")
                order = [v for v in load(out)["verdicts"] if v["check"] == "order"]
                assert order[0]["level"] == "pass", order
        # native access asks for a row group in pieces, and compares what it gets
        stoker("run", "flux_b200", *sizes, "reader.access=native", "reader.decode=verify", "train.computation_time=0.001",
               f"hydra.run.dir={tmp}/verified")
        # row groups ahead of the batches, in pieces and all that arrive at a rank; others' memory is told
        one = ["reader.read_threads=1", "reader.batch_size=5", "train.computation_time=0.001", "reader.decode=verify"]
        for extra in (["reader.data_loader=row_groups"], ["reader.data_loader=row_groups", "reader.parquet_requests=s3dlio"],
                      ["reader.data_loader=row_groups", "reader.access=native", "storage.store=io_uring"],
                      ["reader.data_loader=row_groups", "storage.storage_options.columns=[mean]", "storage.store=direct"],
                      ["reader.access=native", "reader.queue_depth=8"], ["compat.dlio=true"],
                      ["compat.dlio=true", "-n", "2"]):
            done = stoker("run", "flux_b200", *sizes, *one, *extra, f"hydra.run.dir={tmp}/ahead")
            assert [v["level"] for v in load(Path(tmp) / "ahead")["verdicts"] if v["check"] == "order"] == ["pass"], extra
            told = "would hold up to" in (Path(tmp) / "ahead" / "dlio.log").read_text()
            assert told == ("reader.access=native" not in extra and "columns" not in extra[-1] or "columns=[" in str(extra)), extra
        # each of them has its file open, more than a shell allows at first
        of = dict(fmt="parquet", files=2, framework="pytorch", dataset__num_samples_per_file=200, dataset__parquet__row_group_size=1,
                  dataset__record_length_bytes=1, reader__data_loader="row_groups", train__computation_time=0)
        stoker("run", *tiny(f"{tmp}/many", f"{tmp}/many-run", **of),
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (48, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
        # the same of objects
        with S3Server() as s3:
            env = {**{k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "S3_", "DLIO_"))}, **s3.env()}
            of = dict(fmt="parquet", files=4, framework="pytorch", dataset__num_samples_per_file=20, dataset__parquet__row_group_size=3,
                      dataset__verify_samples=0, reader__decode="verify", storage__storage_type="s3", storage__storage_root="bucket")
            stoker("generate", *tiny("data/groups", None, **of), env=env)
            for extra in ({"reader__data_loader": "row_groups"}, {"reader__access": "native", "reader__queue_depth": 3}):
                stoker("run", *tiny("data/groups", f"{tmp}/objects", **of, **extra, workflow__generate_data="false"), env=env)
                assert load(f"{tmp}/objects")["training"]["epochs"][0]["order_proved"], extra
        # a damaged file is found
        path = next(folder.glob("train/*.parquet"))
        with open(path, "r+b") as f:
            f.seek(1000000)
            byte = f.read(1)
            f.seek(1000000)
            f.write(bytes([byte[0] ^ 1]))
        assert "1000000" in stoker("verify", folder, status=1).stderr
        # files of unequal samples: their pages and metadata differ in size; all rows may be one group
        for kind, sizes in {"pages": ["dataset.record_length_bytes=560000", "dataset.record_length_bytes_stdev=60000",
                                      "dataset.num_samples_per_file=4", "dataset.parquet.row_group_size=1000000000000"],
                            "metadata": ["dataset.record_length_bytes=500", "dataset.record_length_bytes_stdev=490",
                                         "dataset.num_samples_per_file=3000", "dataset.parquet.row_group_size=1"]}.items():
            stoker("run", "unet3d_h100", "dataset.format=parquet", "dataset.num_files_train=4", "dataset.compression=snappy",
                   f"dataset.data_folder={tmp}/{kind}", "workflow.generate_data=true", "train.epochs=1", *sizes,
                   "train.total_training_steps=2", "reader.batch_size=4", "reader.read_threads=1", "train.computation_time=0.001",
                   f"hydra.run.dir={tmp}/{kind}-run")
    for override, words in ((["dataset.parquet.columns=[{size: 0}]"], "size of a column"),
                            (["dataset.parquet.columns=[{name: a}, {name: a}]"], "two columns"),
                            (["dataset.parquet.columns=[{name: a}]", "dataset.record_dims=[4]"], "size of a row"),
                            (["dataset.parquet.columns={a: 1}"], "a list is needed"),
                            (["dataset.parquet.columns=[{name: a, dtype: flaot32}]"], "the dtype 'flaot32' is not supported"),
                            (["dataset.parquet.partition_by=a"], "partition_by"),
                            (["dataset.compression=bz2"], "snappy")):
        done = stoker("generate", "unet3d_h100", "dataset.format=parquet", "dataset.record_length_bytes_stdev=0",
                      *override, "dataset.data_folder=/nowhere", status=None)
        assert done.returncode != 0 and words in done.stderr, (override, done.stderr)


main()
