"""The command lines of MLPerf Storage v2.0 and v3, as their harness composes them, run under the name dlio_benchmark,
and what its report generators read afterwards is there and right (tests/dlio_readers.py); keys that it adds itself are
understood without a warning. tests/bench/mlpstorage.py drives the harness itself."""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import dlio_readers  # noqa: E402
from util import STOKER, load, skip, stoker  # noqa: E402

# configs/dlio/config.yaml and the workload files, with their keys, fewer and smaller files
CONFIG = """defaults:
 - _self_
 - workload:
 - override hydra/job_logging: disabled
 - override hydra/hydra_logging: disabled
hydra:
  run:
    dir: ./results/${workload.model}/${now:%Y-%m-%d}-${now:%H-%M-%S}
"""
CONTEXT = "  multiprocessing_context: fork\n"
UNET_DATA = """dataset:
  data_folder: data/unet3d/
  format: npz
  num_files_train: 168
  num_samples_per_file: 1
  record_length_bytes: 40000
  record_length_bytes_stdev: 4000
  record_length_bytes_resize: 2097152
"""
RESNET_DATA = """dataset:
 num_files_train: 1024
 num_samples_per_file: 51
 record_length_bytes: 1146.07
 record_length_bytes_resize: 1505
 data_folder: data/resnet50
 format: tfrecord
"""
COSMO_DATA = """dataset:
 data_folder: data/cosmoflow
 num_files_train: 524288
 num_samples_per_file: 1
 record_length_bytes: 28284
 record_length_bytes_stdev: 713
 format: tfrecord
"""
RETINA_DATA = UNET_DATA.replace("unet3d", "retinanet").replace("npz", "jpeg").replace("40000", "9000").replace(
    "_stdev: 4000", "_stdev: 0")
UNET_END = """  file_shuffle: seed
  sample_shuffle: seed
train:
  epochs: 3
  computation_time: 0.01
checkpoint:
  checkpoint_folder: checkpoints/unet3d
  checkpoint_after_epoch: 5
  epochs_between_checkpoints: 2
metric:
  au: 0.90
"""
TENSORFLOW_END = """train:
  epochs: 3
  computation_time: 0.01
metric:
  au: 0.70
"""


def workload(model, framework, data, flow, rest, kind="  type: cnn\n"):
    return f"model:\n  name: {model}\n{kind}framework: {framework}\nworkflow:\n{flow}{data}{rest}"


RUN = "  generate_data: False\n  train: True\n"
GENERATE = "  generate_data: True\n  train: False\n  checkpoint: False\n"
UNET_READER = "reader:\n  data_loader: pytorch\n  batch_size: 7\n  read_threads: 4\n"
LLAMA = """model:
  name: llama_8b
  type: transformer
  num_layers: 2
  model_datatype: fp16
  optimizer_datatype: fp32
  parallelism:
    pipeline: 1
    tensor: 1
    zero_stage: 3
  transformer:
    vocab_size: 1024
    hidden_size: 256
    ffn_hidden_size: 512
    num_attention_heads: 32
    num_kv_heads: 8
framework: pytorch
workflow:
  generate_data: False
  train: False
  checkpoint: True
checkpoint:
  checkpoint_folder: checkpoints/llama_8b
  time_between_checkpoints: 0
  num_checkpoints_write: 10
  num_checkpoints_read: 10
  fsync: True
"""
FILES = {
    "unet3d_datagen": workload("unet3d", "pytorch", UNET_DATA, GENERATE, ""),
    "unet3d_h100": workload("unet3d", "pytorch", UNET_DATA, RUN + "  checkpoint: False\n", UNET_READER + UNET_END),
    "unet3d_b200": workload("unet3d", "pytorch", UNET_DATA, RUN + "  checkpoint: False\n",
                            UNET_READER + CONTEXT + UNET_END),
    "resnet50_datagen": workload("resnet50", "tensorflow", RESNET_DATA, GENERATE, ""),
    "resnet50_h100": workload("resnet50", "tensorflow", RESNET_DATA, RUN,
                              "reader:\n data_loader: tensorflow\n read_threads: 8\n computation_threads: 8\n"
                              " batch_size: 40\n" + TENSORFLOW_END),
    "cosmoflow_datagen": workload("cosmoflow", "tensorflow", COSMO_DATA, GENERATE, "", ""),
    "cosmoflow_h100": workload("cosmoflow", "tensorflow", COSMO_DATA, RUN,
                               "reader:\n data_loader: tensorflow\n read_threads: 4\n batch_size: 1\n"
                               " file_shuffle: seed\n sample_shuffle: seed\n shuffle_size: 2\n" + TENSORFLOW_END, ""),
    "retinanet_datagen": workload("retinanet", "pytorch", RETINA_DATA, GENERATE, ""),
    "retinanet_b200": workload("retinanet", "pytorch", RETINA_DATA, RUN + "  checkpoint: False\n",
                               UNET_READER + CONTEXT + UNET_END),
    "llama3_8b": LLAMA,
}
V3 = {"dataset.skip_listing": "True", "dataset.listing_validation_interval": "1"}
DIRECT = {"storage.storage_type": "direct_fs", "storage.storage_options.storage_library": "s3dlio",
          "storage.storage_options.uri_scheme": "direct"}
FILES_OF = {"unet3d": 28, "resnet50": 4, "cosmoflow": 12, "retinanet": 28}
UNKNOWN = re.compile(r"not a key|without effect|no effect|\[ERROR\]")


def line(tmp, name, leaf, params):
    """What the harness runs, without mpirun before it (--exec-type docker)."""
    return [f"workload={name}", f"++hydra.run.dir={leaf}", "++hydra.output_subdir=dlio_config",
            *[f"++workload.{k}={v}" for k, v in params.items()], f"--config-dir={tmp}/configs"]


def dlio(tmp, args, status=0):
    done = subprocess.run([tmp / "bin/dlio_benchmark", *args], capture_output=True, text=True, timeout=120, cwd=tmp)
    assert done.returncode == status, (args, done.returncode, done.stdout, done.stderr)
    said = [s for s in done.stderr.splitlines() if UNKNOWN.search(s)]
    assert status or not said, (args, said)
    return done.stderr


def compared(leaf, reported):
    """The figures of the report are those of result.json."""
    result, metric = load(leaf), reported["metrics"]
    for name, path in (("train_au_mean_percentage", ("training", "au_mean_percent")),
                       ("train_throughput_mean_samples_per_second", ("training", "throughput_mean_samples_per_s")),
                       ("train_io_mean_MB_per_second", ("training", "io_mean_mib_per_s")),
                       ("save_checkpoint_duration_mean_seconds", ("checkpoint", "save", "duration_mean_s")),
                       ("load_checkpoint_duration_mean_seconds", ("checkpoint", "load", "duration_mean_s"))):
        of = result
        for key in path:
            of = (of or {}).get(key)
        same = metric.get(name) == of or of is not None and abs(metric[name] - of) <= 1e-9 * abs(of)
        assert same, (leaf, name, metric.get(name), of)
    for name, rate in (("save", "save_checkpoint_io_mean_GB_per_second"), ("load",
                                                                          "load_checkpoint_io_mean_GB_per_second")):
        if rate in metric:
            of = result["checkpoint"][name]["throughput_mean_bytes_per_s"] / 2**30
            assert abs(metric[rate] - of) < 1e-6 * of, (rate, metric[rate], of)


def training(tmp, model, version, accelerator, direct=False):
    leaf = tmp / version / model / ("direct" if direct else "plain")
    data = tmp / version / ("direct" if direct else "data")
    own = {"dataset.num_files_train": FILES_OF[model], **(V3 if version == "v3" else {})}
    if direct:  # the folder is relative to the root, and the options come before it
        own = {**own, **DIRECT, "storage.storage_root": data, "dataset.data_folder": model}
    else:
        own["dataset.data_folder"] = data / model
    for folder in ("train", "valid", "test"):  # the harness makes them
        (data / model / folder).mkdir(parents=True)
    dlio(tmp, line(tmp, f"{model}_datagen", leaf / "datagen", own))
    assert len(list((data / model / "train").iterdir())) >= FILES_OF[model]
    dlio(tmp, line(tmp, f"{model}_{accelerator}", leaf / "run", own))
    assert not (leaf / "datagen/summary.json").exists(), "a report would take a generation for a run"
    dlio_readers.folder(leaf / "run", "dlio_config")
    read = (dlio_readers.report_v3 if version == "v3" else dlio_readers.report_v2)(leaf / "run")
    assert read["model"] == model and read["num_processes"] == 1
    assert read["overrides"]["dataset.num_files_train"] == str(FILES_OF[model]), read["overrides"]
    if version == "v2.0":
        assert (read["type"], read["accelerator"]) == ("training", accelerator) and read["files_needed"] > 0
    assert len(read["metrics"]["train_au_percentage"]) == 3
    compared(leaf / "run", read)
    return leaf / "run"


def checkpoints(tmp, version):
    leaf = tmp / version / "llama3-8b"
    folder = tmp / version / "saved/llama3-8b"
    dlio(tmp, line(tmp, "llama3_8b", leaf, {"checkpoint.mode": "subset", "model.parallelism.data": 1,
                                            "checkpoint.num_checkpoints_read": 1,
                                            "checkpoint.num_checkpoints_write": 2,
                                            "checkpoint.checkpoint_folder": folder}))
    dlio_readers.folder(leaf, "dlio_config")
    read = (dlio_readers.report_v3 if version == "v3" else dlio_readers.report_v2)(leaf)
    assert read["model"] == "llama3-8b", read
    if version == "v2.0":
        assert (read["type"], read["writes"], read["reads"]) == ("checkpointing", 2, 1)
    assert read["metrics"]["checkpoint_size_GB"] > 0 and not any("train" in k for k in read["metrics"])
    compared(leaf, read)
    assert folder.is_dir() and len(list(folder.iterdir())) == 2


def keys(tmp):
    """Every key that v3 sets itself, from the command line and from a file."""
    own = {**V3, **DIRECT, "dataset.total_disk_bytes": 1026204396000, "storage.s3_force_path_style": "true",
           "reader.odirect": "True", "dataset.listing_validation_interval": 10}
    shown = stoker("show", "config", *line(tmp, "unet3d_b200", tmp / "none", own), "--set", status=None)
    assert shown.returncode == 0 and not UNKNOWN.search(shown.stderr + shown.stdout), shown
    text = FILES["unet3d_b200"].replace("dataset:\n", """storage:
  storage_type: direct_fs
  storage_options:
    storage_library: s3dlio
    uri_scheme: direct
  s3_force_path_style: true
dataset:
  skip_listing: true
  listing_validation_interval: 1000
  total_disk_bytes: 1026204396000
""")
    (tmp / "configs/workload/all_keys.yaml").write_text(text)
    shown = stoker("show", "config", "all_keys", "--config-dir", tmp / "configs", "--set")
    assert not UNKNOWN.search(shown.stderr), shown.stderr
    assert "direct" in shown.stdout, shown.stdout
    # object storage is refused in words, before anything is read
    done = subprocess.run([tmp / "bin/dlio_benchmark", *line(tmp, "unet3d_b200", tmp / "none", {
        **V3, "storage.storage_type": "aistore", "storage.storage_root": "bucket",
        "storage.storage_options.storage_library": "s3dlio", "storage.storage_options.uri_scheme": "s3",
        "storage.s3_force_path_style": "true"})], capture_output=True, text=True, cwd=tmp)
    assert done.returncode != 0 and "storage.storage_type aistore is not supported" in done.stderr, done.stderr
    # a run that cannot be made ends with another status, and leaves no summary to be taken for a result
    dlio(tmp, line(tmp, "unet3d_h100", tmp / "empty", {"dataset.num_files_train": 28,
                                                       "dataset.data_folder": tmp / "nothing"}), status=1)
    assert not (tmp / "empty/summary.json").exists()


def looks(tmp):
    """listing_validation_interval says how many files are looked at: all, one in ten, the first and the last."""
    own = {"dataset.num_files_train": 1500, "dataset.record_length_bytes": 16, "dataset.record_length_bytes_stdev": 0,
           "dataset.data_folder": tmp / "many"}
    dlio(tmp, line(tmp, "unet3d_datagen", tmp / "many-gen", own))
    own.update({"train.total_training_steps": 3, "train.epochs": 1})
    for interval, checked in ((0, 1000), (1, 1500), (10, 152), (5000, 2)):
        leaf = tmp / f"many-{interval}"
        dlio(tmp, line(tmp, "unet3d_h100", leaf, {**own, **V3, "dataset.listing_validation_interval": interval}))
        found = load(leaf)["dataset"]["sizes_checked"]
        assert found == checked, (interval, found)
    (tmp / "many/train/img_0777_of_1500.npz").write_bytes(b"")
    said = dlio(tmp, line(tmp, "unet3d_h100", tmp / "many-bad", {**own, **V3}), status=1)
    assert "img_0777_of_1500.npz" in said, said


def main():
    try:
        import yaml  # noqa: F401
    except ImportError:
        skip("Python has no yaml")
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        (tmp / "configs/workload").mkdir(parents=True)
        (tmp / "configs/config.yaml").write_text(CONFIG)
        for name, text in FILES.items():
            (tmp / f"configs/workload/{name}.yaml").write_text(text)
        (tmp / "bin").mkdir()
        (tmp / "bin/dlio_benchmark").symlink_to(pathlib.Path(STOKER).resolve())
        jobs = [("v2.0", m, "h100") for m in ("unet3d", "resnet50", "cosmoflow")]
        jobs += [("v3", "unet3d", "b200"), ("v3", "retinanet", "b200"), ("v3", "resnet50", "h100"),
                 ("v3", "cosmoflow", "h100")]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            done = [pool.submit(training, tmp, m, v, a) for v, m, a in jobs]
            done += [pool.submit(checkpoints, tmp, v) for v in ("v2.0", "v3")]
            done += [pool.submit(keys, tmp), pool.submit(looks, tmp)]
            if direct_works(tmp):
                done.append(pool.submit(training, tmp, "unet3d", "v3", "b200", True))
            for job in done:
                job.result()


def direct_works(tmp):
    """tmpfs has no O_DIRECT; the store refuses it."""
    try:
        os.close(os.open(tmp / "probe", os.O_CREAT | os.O_WRONLY | os.O_DIRECT))
        return True
    except OSError:
        print("left out: the file system of the temporary folder has no O_DIRECT", flush=True)
        return False


if __name__ == "__main__":
    main()
