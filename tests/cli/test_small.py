"""stoker run --small: a run that any machine can make, with the bytes/s that the full one needs."""
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import load, stoker  # noqa: E402


with tempfile.TemporaryDirectory(dir="/var/tmp") as tmp:
    run = ["run", "cosmoflow_h100", "-n", "1", "--small", "--progress", "none", "-o", f"{tmp}/out", f"dataset.data_folder={tmp}/data",
           "train.epochs=1", "dataset.record_length_bytes=100KB", "dataset.record_length_bytes_stdev=0"]
    done = stoker(*run)
    assert "--small: cosmoflow_h100: files " in done.stderr, done.stderr
    r = load(f"{tmp}/out")
    keys = r["configuration"]
    assert keys["storage.page_cache"]["value"] == "cold_epochs", keys["storage.page_cache"]
    assert "small" in keys["run.note"]["value"], keys["run.note"]
    # what one accelerator needs is what it needs in full size: 100 kB each 3.5 ms
    assert abs(r["need"]["bytes_per_s"] / (100e3 / 0.0035) - 1) < 0.02, r["need"]
    assert r["training"]["epochs"][0]["steps"] >= 20, r["training"]["epochs"][0]
    assert "steady" not in [v["check"] for v in r["verdicts"] if v["level"] == "fail"], r["verdicts"]

    # fewer readers need fewer steps; the larger dataset that is there is read all the same, so that both can be compared
    files = r["configuration"]["dataset.num_files_train"]["value"]
    fewer = run + ["reader.read_threads=1", "reader.prefetch_size=1", "--cfg", "job"]
    done = stoker(*fewer)
    assert f"all {files} files that are in the folder are read" in done.stderr and f"num_files_train: {files}\n" in done.stdout, done
    done = stoker(*fewer, f"dataset.data_folder={tmp}/other")
    assert "in the folder" not in done.stderr and f"num_files_train: {files}\n" not in done.stdout, done

    # other samples stay apart from those that are there, and are found again
    apart = run + ["-n", "2", "dataset.record_length_bytes=50KB"]
    done = stoker(*apart)
    names = [line.rsplit(" in ", 1)[0].split("'")[1] for line in done.stderr.splitlines() if "another dataset is in" in line]
    assert len(names) == 1 and names[0].startswith(f"{tmp}/data/small-"), done.stderr
    assert load(f"{tmp}/out")["configuration"]["dataset.data_folder"]["value"] == names[0]
    before = sorted(str(p) for p in pathlib.Path(tmp, "data").rglob("*.tfrecord"))
    stoker(*apart)
    stoker(*run)
    assert sorted(str(p) for p in pathlib.Path(tmp, "data").rglob("*.tfrecord")) == before
    assert json.loads(stoker("verify", f"{tmp}/data", "--json").stdout)["outcome"] == "every byte as generated"

    # a search of --small reads cold, too, and leaves out what steps of another length say nothing of
    said = json.loads(stoker("capacity", "unet3d_h100", "--small", "--json", "-q", "--time", "1", "--max", "1", "-o", f"{tmp}/search",
                             f"dataset.data_folder={tmp}/searched", "dataset.record_length_bytes=1000000", "reader.read_threads=1",
                             "dataset.record_length_bytes_stdev=0", timeout=100).stdout)
    one, = pathlib.Path(tmp, "search").glob("1/1")
    assert load(one)["configuration"]["storage.page_cache"]["value"] == "cold_epochs"
    assert "checkpoints: --small shortens the steps between them" in said["left_out"], said["left_out"]

    # what the caller sets stays
    out = stoker("run", "unet3d_h100", "--small", "--cfg", "job", "storage.page_cache=keep", "train.epochs=1",
                 f"dataset.data_folder={tmp}/data").stdout
    assert "page_cache: keep" in out and "epochs: 1\n" in out, out

    # the number of files, too; the steps follow from it, and too few are named
    for files, few in ((600, False), (14, True)):
        done = stoker("run", "unet3d_h100", "--small", "--cfg", "job", f"dataset.num_files_train={files}", f"dataset.data_folder={tmp}/given")
        assert f"num_files_train: {files}\n" in done.stdout and f"files {files} ({files})" in done.stderr, done
        assert ("too few for the steps" in done.stderr) == few, done.stderr

    # steps of under 2 ms are called too short
    for n, short in ((4, False), (32, True)):
        done = stoker("run", "unet3d_h100", "--small", "--cfg", "job", "-n", n, f"dataset.data_folder={tmp}/data")
        assert ("steps this short show the delays of this host" in done.stderr) == short, done.stderr

    # checkpoints go to the storage that is tried, unless the user names a folder; the dataset stays one
    saves = ["run", "unet3d_h100", "--small", "--progress", "none", "-o", f"{tmp}/saved", f"dataset.data_folder={tmp}/with",
             "dataset.record_length_bytes=100KB", "dataset.record_length_bytes_stdev=0", "train.computation_time=0.003",
             "++workload.model.model_size_bytes=1000000", "++workload.checkpoint.checkpoint_after_epoch=1"]
    for _ in range(2):
        done = stoker(*saves)
        assert f"checkpoints are written to '{tmp}/with/checkpoints' and stay there" in done.stderr, done.stderr
        assert any(pathlib.Path(tmp, "with/checkpoints").iterdir()) and "another dataset" not in done.stderr, done.stderr
    assert json.loads(stoker("verify", f"{tmp}/with", "--json").stdout)["outcome"] == "every byte as generated"
    done = stoker(*saves, "--cfg", "job", f"checkpoint.checkpoint_folder={tmp}/elsewhere")
    assert "are written to" not in done.stderr and f"checkpoint_folder: {tmp}/elsewhere" in done.stdout, done

    # a folder that nobody has chosen may be on another file system
    if os.path.ismount("/dev/shm"):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
            keys = [k for k in saves if k != "--small" and "data_folder" not in k] + ["dataset.num_files_train=14", "train.epochs=1"]
            keys += ["workflow.generate_data=true", f"dataset.data_folder={other}/data"]
            said = stoker(*keys, cwd=tmp).stderr
            assert f"'{tmp}/checkpoints/unet3d', which is on another file system than the data ('{other}/data')" in said, said
            assert "another file system" not in stoker(*keys, f"checkpoint.checkpoint_folder={other}/saves").stderr

    # a mistake is told as without it
    bad = stoker("run", "unet3d_h100", "--small", "reader.batch_siz=1", "--strict", status=2)
    assert "batch_siz" in bad.stderr, bad.stderr
