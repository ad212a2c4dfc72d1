"""Every loader that goes with framework pytorch, over the formats it has, and the orders of samples."""
# tier: long
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, load, stoker, tiny  # noqa: E402


def formats():
    return [line.split()[0] for line in stoker("show", "formats").stdout.splitlines() if line[:1].isalpha()]


class Data:
    """A dataset of one format, made once."""

    def __init__(self, tmp, fmt, files=12, per_file=1):
        self.tmp, self.keys = tmp, dict(
            framework="pytorch", fmt=fmt, files=files, dataset__num_samples_per_file=per_file,
            dataset__num_files_eval=4, dataset__record_length_bytes=2048, workflow__evaluation="true",
            reader__batch_size_eval=1, train__computation_time=0, evaluation__eval_time=0, train__epochs=2)
        self.data = tmp / f"{fmt}{per_file}"
        stoker("generate", *tiny(self.data, None, **self.keys))
        self.keys["workflow__generate_data"] = "false"

    def run(self, ranks, status=0, **keys):
        done = stoker("run", "-n", ranks, *tiny(self.data, self.tmp / "out", **{**self.keys, **keys}), status=status)
        return load(self.tmp / "out") if status == 0 else done.stderr + done.stdout


def complete(result, samples, used=None):
    for epoch in result["training"]["epochs"]:
        assert epoch["order_proved"], epoch["order_note"]
        assert epoch["samples"] == (samples if used is None else used), epoch
    return result["training"]["epochs"][0]["order_note"]


def dali(tmp):
    names = ["npz", "npy"] if SANITIZED else formats()
    for fmt in names:
        per_file = 1 if fmt in ("png", "jpeg") else 2
        data = Data(tmp, fmt, per_file=per_file)
        for ranks, workers, persistent in ((1, 0, "true"), (2, 3, "true"), (2, 2, "false")):
            complete(data.run(ranks, reader__data_loader="dali", reader__read_threads=workers,
                              reader__decode="verify", reader__persistent_workers=persistent,
                              reader__sample_shuffle="seed"), 12 * per_file)
    print(f"   dali: {', '.join(names)}")


def native_dali(tmp):
    for fmt in ("npy", "tfrecord", "jpeg", "png"):
        data = Data(tmp, fmt, per_file=2 if fmt == "tfrecord" else 1)
        samples = 24 if fmt == "tfrecord" else 12
        for ranks, keys in ((1, {}), (2, {"reader__dont_use_mmap": "true"}), (3, {"reader__read_ahead": "true"}),
                            (2, {"reader__read_threads": 0}), (1, {"reader__access": "native"})):
            result = data.run(ranks, reader__data_loader="native_dali", reader__decode="verify",
                              reader__sample_shuffle="seed", reader__shuffle_size=5, **keys)
            complete(result, samples)
            assert result["ranks"][0]["payload_bytes"] > 0
    stores = {"storage.store": "throttle+posix"}
    said = data.run(1, status=2, reader__data_loader="native_dali", **stores)
    assert "reader.dont_use_mmap to true" in said, said
    complete(data.run(1, reader__data_loader="native_dali", reader__dont_use_mmap="true", **stores), 12)
    # DLIO's ranks all read the first shard
    note = complete(data.run(2, reader__data_loader="native_dali", compat__dlio="true"), 12)
    assert "each of the 2 ranks read the same 6 of 12" in note, note
    # 13 samples on 2 ranks: one is repeated when asked
    data = Data(tmp / "odd", "npy", files=13)
    complete(data.run(2, reader__data_loader="native_dali"), 13, used=12)
    note = complete(data.run(2, reader__data_loader="native_dali", reader__pad_last_batch="true",
                             reader__batch_size=7), 13, used=14)
    assert "13 of 13 exactly once, and 1 again" in note, note
    print("   native_dali: four formats, mapped and read, shards and padding")


def synthetic(tmp):
    data = Data(tmp, "npz")
    for ranks in (1, 2):
        result = data.run(ranks, reader__data_loader="synthetic")
        complete(result, 12)
        assert result["ranks"][0]["requests"] == 0
        # DLIO's is one batch short, of all ranks together
        result = data.run(ranks, reader__data_loader="synthetic", compat__dlio="true")
        assert [e["steps"] for e in result["training"]["epochs"]] == [5 if ranks == 1 else 3] * 2
    print("   synthetic: no request")


def orders(tmp):
    data = Data(tmp / "orders", "npz", files=13)
    note = complete(data.run(2, reader__order="distributed", reader__sample_shuffle="seed", reader__batch_size=7),
                    13, used=14)
    assert "13 of 13 exactly once, and 1 again" in note and "DistributedSampler" in note, note
    complete(data.run(2, reader__order="distributed", reader__sample_shuffle="seed", reader__drop_last="true"),
             13, used=12)
    complete(data.run(1, reader__order="random", reader__sample_shuffle="random"), 13, used=12)
    said = data.run(2, status=2, reader__order="random")
    assert "use distributed" in said, said
    said = data.run(1, reader__order="random", reader__drop_last="true")
    assert any("reader.drop_last has no effect" in v["text"] for v in said["verdicts"]), said["verdicts"]
    print("   orders: distributed, random")


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        for folder in ("dali", "native", "synthetic"):
            (tmp / folder).mkdir()
        dali(tmp / "dali")
        native_dali(tmp / "native")
        synthetic(tmp / "synthetic")
        orders(tmp / "synthetic")


if __name__ == "__main__":
    main()
