"""dataset.file_bytes: files of every format come out at that size, real libraries read them, and the dataset is found,
verified and read again; what cannot be is refused with a sentence."""
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import left_out, load, stoker, tiny  # noqa: E402

try:
    import numpy
    from PIL import Image
except ImportError:
    numpy = None

WITHIN = 0.03
LONG = {"dataset__record_length_bytes": 150000}


def generated(data, fmt, size, **keys):
    keys = {"framework": "pytorch", "dataset__file_bytes": size, "reader__batch_size": 1, **keys}
    args = tiny(data, None, fmt=fmt, **keys)
    if "dataset__record_length_bytes" not in keys:
        args = [a for a in args if not str(a).startswith("dataset.record_length_bytes=")]
    return args


def sizes(tmp):
    """The mean of the files, the manifest, the sentence, verify, and what Pillow and NumPy see."""
    cases = [(fmt, {}) for fmt in ("npz", "npy", "hdf5", "tfrecord", "csv", "png", "jpeg", "indexed_binary")]
    cases += [("npz", {"dataset__compression": "zip"}), ("csv", {"dataset__compression": "gzip"}),
              ("csv", {"dataset__record_element_type": "float32"}), ("npz", {"dataset__num_samples_per_file": 16}),
              ("npy", {"dataset__record_element_type": "float64"}),
              ("png", LONG), ("jpeg", LONG), ("jpeg", {"dataset__record_dims": "[375,500]"})]
    if not numpy:
        left_out("Pillow and NumPy, which are not installed, read no images")
    for fmt, keys in cases:
        for size in (5000, 40000, 80000):
            data = tmp / "data"
            args = generated(data, fmt, size, **keys)
            said = stoker("generate", *args).stdout
            names = [p for p in (data / "train").iterdir() if not re.search(r"\.(idx|off|sz)", p.name)]
            mean = sum(p.stat().st_size for p in names) / len(names)
            if fmt == "indexed_binary":  # its index files stand beside them
                mean *= len(names) / 8
            assert len(names) == 8 or fmt == "indexed_binary", names
            assert abs(mean / size - 1) <= WITHIN, (fmt, keys, size, mean)
            assert re.search(r"^mean file [0-9.]+ KB; files of [0-9.]+ KB were asked for", said, re.M), said
            manifest = json.loads((data / "stoker_manifest.json").read_text())
            assert manifest["keys"]["dataset.file_bytes"] == str(size), manifest["keys"]
            assert abs(manifest["mean_train_file_bytes"] / size - 1) <= WITHIN, manifest
            assert "every byte as generated" in stoker("verify", data).stdout
            assert "0 files written" in stoker("generate", *args).stdout
            for path in names if numpy and fmt in ("png", "jpeg") else []:
                pixels = numpy.asarray(Image.open(path))
                shape = [int(n) for n in manifest["shape"].split(" x ")]
                assert list(pixels.shape) == shape and pixels.std() > 5, (path, pixels.shape, shape)
            shutil.rmtree(data)
    print(f"   {len(cases)} kinds of files of 5 to 80 KB, within {100 * WITHIN:.0f} %")


def read(tmp):
    """Every byte that a run reads of them is compared; need and generation say what files have."""
    for fmt, keys in (("png", LONG), ("jpeg", LONG), ("png", {}), ("jpeg", {"dataset__record_length_bytes_stdev": 12000}),
                      ("npy", {"dataset__record_length_bytes_stdev": 12000})):
        for access in ("framework", "native"):
            out = tmp / "out"
            args = generated(tmp / "read", fmt, 40000, files=40, reader__decode="verify", reader__access=access, **keys)
            stoker("run", *args, "-o", out)
            result = load(out)
            mean = result["need"]["sample_file_bytes"]
            assert abs(mean / 40000 - 1) < (0.1 if "stdev" in str(keys) else WITHIN), mean
            assert result["generation"]["mean_file_bytes"] == mean, result["generation"]
            assert result["training"]["payload_bytes"] == round(result["need"]["sample_decoded_bytes"] * 40)
            shutil.rmtree(out)
        shutil.rmtree(tmp / "read")
    # a file of the same shape with other noise is another dataset's
    args = generated(tmp / "bad", "png", 40000, files=4, **LONG)
    stoker("generate", *args)
    small = generated(tmp / "other", "png", 30000, files=4, **LONG)
    stoker("generate", *small)
    first = sorted((tmp / "bad" / "train").iterdir())[0]
    shutil.copy(tmp / "other" / "train" / first.name, first)
    assert first.name in stoker("verify", tmp / "bad", status=1).stderr
    refused = stoker("run", *small[:-1], "workflow.generate_data=false", f"dataset.data_folder={tmp / 'bad'}",
                     "-o", tmp / "no", status=None)
    assert refused.returncode != 0 and "different dataset" in refused.stderr, refused.stderr
    print("   verified while read, through both accesses")


def overrides(tmp):
    """An override wins against what a workload file says; two of one place are an error."""
    shown = stoker("show", "config", "unet3d_h100", "-q", "dataset.file_bytes=1e6").stdout
    assert re.search(r"^dataset\.record_length_bytes +1000000 ", shown, re.M), shown
    # the spread is kept: 68341808 / 146600628 of a megabyte
    assert re.search(r"^dataset\.record_length_bytes_stdev +466176", shown, re.M), shown
    assert "20.7 MiB/s (21.7 samples/s) at 100 %" in shown, shown.splitlines()[-1]
    shown = stoker("show", "config", "retinanet_b200", "-q", "dataset.file_bytes=322957").stdout
    assert "155 MiB/s (505 samples/s) at 100 %, 132 at 85 %" in shown, shown.splitlines()[-1]
    for fmt, keys, *words in (
            ("npy", {"dataset__record_length_bytes": 4096}, "dataset.record_length_bytes", "remove one of the two"),
            ("npz", {"dataset__record_dims": "[10,10]"}, "dataset.record_dims", "remove one of the two"),
            ("npz", {"compat__dlio": "true"}, "compat.dlio"),
            ("synthetic", {}, "no meaning"),
            ("jpeg", {"dataset__record_length_bytes": 10000}, "takes", "to", "not 40000"),
            ("png", {"dataset__record_length_bytes": 10000}, "takes", "not 40000"),
            ("png", {"dataset__record_length_bytes": 9e8}, "not 40000"),
            ("npz", {"dataset__file_bytes": 100}, "single element")):
        done = stoker("generate", *generated(tmp / "x", fmt, 40000, **keys), status=None)
        assert done.returncode == 2, (fmt, keys, done.returncode, done.stderr)
        for word in ("dataset.file_bytes", *words):
            assert word in done.stderr, (word, done.stderr)
    # without it, the sentence says what became of the samples that were asked for
    said = stoker("generate", *tiny(tmp / "y", None, fmt="jpeg", framework="pytorch",
                                    dataset__record_length_bytes=40000)).stdout
    assert "mean file 22.6 KB; samples of 40000 bytes were asked for, decoded (dataset.file_bytes" in said, said
    print("   overrides and refusals")


def main():
    # files are synced one by one: in memory that costs nothing
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as tmp:
        tmp = pathlib.Path(tmp)
        overrides(tmp)
        sizes(tmp)
        read(tmp)


if __name__ == "__main__":
    main()
