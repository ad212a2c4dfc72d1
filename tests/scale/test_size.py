"""Ten million files and 10^9 samples: memory does not grow with either, except for what is stated, and
the work done before the first step does not either."""
# beside others
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, load, skip, stoker, tiny  # noqa: E402

if SANITIZED:
    skip("a sanitizer multiplies the memory that is measured here")
MIB = 1 << 20
FEW, MANY, PER_FILE = 10_000, 10_000_000, 100


def run(tmp, files, **keys):
    out = pathlib.Path(tmp, "out")
    base = dict(fmt="synthetic", dataset__num_samples_per_file=PER_FILE, storage__store="synthetic",
                workflow__generate_data="false", train__computation_time=0,
                train__total_training_steps=100)
    base.update(keys)
    stoker("run", *tiny("/data", out, files=files, **base))
    r = load(out)
    assert r["status"] == "complete"
    memory = r["memory"]
    assert memory["peak_rss_bytes"] <= memory["bound_bytes"] <= 1 << 30, memory
    epoch = r["training"]["epochs"][0]
    assert epoch["order_proved"], epoch["order_note"]
    assert f"of {files * PER_FILE} samples" in epoch["order_note"], epoch["order_note"]
    return r


def growth(tmp, what, **keys):
    few, many = (run(tmp, n, **keys)["memory"]["peak_rss_bytes"] for n in (FEW, MANY))
    print(f"   {what}: {FEW:,} files {few / MIB:.1f} MiB, {MANY:,} files {many / MIB:.1f} MiB")
    return many - few


with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as tmp:
    assert growth(tmp, "shuffled samples") < MIB
    assert growth(tmp, "shuffled files", reader__sample_shuffle="off", reader__file_shuffle="seed") < MIB
    assert growth(tmp, "DLIO's order", compat__dlio="true", framework__costs="none") < MIB
    # two 32-bit dimensions a file
    assert growth(tmp, "drawn sizes", dataset__record_length_bytes_stdev=100) < 8 * MANY + MIB

    # each worker's buffer of samples, and one more to foresee them: 8 bytes a place
    for places in (300_000, 1_000_000):
        r = run(tmp, 100 * FEW, reader__data_loader="webdataset", reader__read_threads=4, reader__sample_shuffle="seed",
                reader__shuffle_size=places)
        print(f"   webdataset, {places:,} samples in each buffer: {r['memory']['peak_rss_bytes'] / MIB:.1f} MiB of "
              f"{r['memory']['bound_bytes'] / MIB:.1f} MiB stated")

    # writing: each file once, in the memory of the writers
    r = run(tmp, 1_000_000, workflow__generate_data="true", dataset__num_subfolders_train=1000)
    assert r["generation"]["files_written"] == 1_000_000, r["generation"]

    # files in memory take a page each and what names them
    r = run(tmp, 20_000, workflow__generate_data="true", storage__store="memory")
    print(f"   20,000 files in memory: {r['memory']['peak_rss_bytes'] / MIB:.1f} MiB of "
          f"{r['memory']['bound_bytes'] / MIB:.1f} MiB stated")
    assert r["memory"]["bound_bytes"] < 1.5 * r["memory"]["peak_rss_bytes"], r["memory"]

    # files that exist: as many sizes are asked for, however many there are
    data = pathlib.Path(tmp, "data")
    for files in (1000, 4000):
        keys = dict(storage__store="posix", dataset__data_folder=data, dataset__file_prefix=f"p{files}")
        r = run(tmp, files, workflow__generate_data="true", **keys)
        assert r["dataset"]["sizes_checked"] == 1000, r["dataset"]
        assert r["generation"]["files_written"] == files, r["generation"]
        (data / "stoker_manifest.json").unlink()
        r = run(tmp, files, **keys)
        assert r["dataset"]["sizes_checked"] == 1000 and r["dataset"]["checked_by"] == "sizes", r["dataset"]
