"""Every kind of dataset that DLIO itself generated (tests/data/dlio-data, each with its overrides) is found
complete, has the sizes that ours would have where these are a pure function of the workload, and is read
and decoded, training and evaluation, in the framework's way and in ours."""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SOURCE, load, stoker  # noqa: E402

KINDS = 26
# what zlib, libjpeg or numbers as text come to depends on the content
ROUGH = {"csv", "csv_4x4", "csv_gzip", "jpeg", "npz_zip"}


def keys_of(folder):
    """The overrides of DLIO's run about the dataset."""
    keys = {}
    for line in (folder / "overrides.yaml").read_text().splitlines():
        key, _, value = line.removeprefix("- ").removeprefix("++workload.").partition("=")
        if key.startswith("dataset."):
            keys[key] = value
    keys["dataset.data_folder"] = str(folder)
    for kind in ("train", "eval"):
        keys.setdefault(f"dataset.num_files_{kind}", "0")
        keys.setdefault(f"dataset.num_subfolders_{kind}", "0")
    return keys


def renamed(folder, tmp):
    """The folder, with the names that gzip files have here; DLIO calls them .csv all the same."""
    if folder.name != "csv_gzip":
        return folder
    copy = pathlib.Path(tmp) / folder.name
    (copy / "train").mkdir(parents=True, exist_ok=True)
    (copy / "overrides.yaml").write_text((folder / "overrides.yaml").read_text())
    for path in (folder / "train").iterdir():
        (copy / "train" / f"{path.name}.gz").write_bytes(path.read_bytes())
    return copy


def check(folder, out, access):
    keys = keys_of(folder)
    train, evaluated = int(keys["dataset.num_files_train"]), int(keys["dataset.num_files_eval"])
    per_file = int(keys.get("dataset.num_samples_per_file", 1))
    keys.update({"reader.access": access, "reader.decode": "full", "reader.batch_size": 1, "reader.batch_size_eval": 1,
                 "reader.read_threads": 0, "train.epochs": 1, "train.computation_time": 0,
                 "workflow.evaluation": str(evaluated > 0).lower()})
    stoker("run", "default", "-q", "-o", out, *[f"{k}={v}" for k, v in keys.items()])
    result = load(out)
    assert result["status"] == "complete", result["reason"]
    epoch = result["training"]["epochs"][0]
    assert epoch["samples"] == train * per_file and epoch["order_proved"], epoch
    text = [v["text"] for v in result["verdicts"] if v["check"] == "dataset"][0]
    if folder.name not in ROUGH:
        assert f"the sizes of {train + evaluated} files, 0 of them only approximately" in text, text
    assert "synthetic" in folder.name or epoch["payload_bytes"] > 0, epoch
    print(f"{folder.name}, {access}: {epoch['samples']} samples, {epoch['payload_bytes']} bytes; {text}")
    return epoch["payload_bytes"]


def main():
    folders = sorted(p for p in (pathlib.Path(SOURCE) / "tests/data/dlio-data").iterdir() if p.is_dir())
    assert len(folders) == KINDS, len(folders)
    with tempfile.TemporaryDirectory() as tmp:
        for folder in folders:
            folder = renamed(folder, tmp)
            payload = {check(folder, os.path.join(tmp, "out"), access) for access in ("framework", "native")}
            assert len(payload) == 1, (folder, payload)


if __name__ == "__main__":
    main()
