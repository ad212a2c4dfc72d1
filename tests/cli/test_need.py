"""What one accelerator needs: before a run from the workload, after it beside what the storage gave; and bytes in files
apart from decoded bytes."""
import csv
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import attempts, load, stoker, tiny  # noqa: E402

MIB = 1 << 20


def shown():
    """show workloads and show config say the same."""
    lines = {line.split()[0]: line for line in stoker("show", "workloads").stdout.splitlines()}
    for name, row, text in (
            ("unet3d_h100", r"21\.7 2\.96 GiB/s +2\.66$", "2.96 GiB/s (21.7 samples/s) at 100 %, 2.66 at 90 %"),
            ("cosmoflow_a100", r"181 +489 MiB/s +342$", "489 MiB/s (181 samples/s) at 100 %, 342 at 70 %"),
            ("resnet50_h100", r"1786 +195 MiB/s +175$", "195 MiB/s (1786 samples/s) at 100 %, 175 at 90 %"),
            ("resnet50_datagen", r"- +- +-$", None)):
        assert re.search(row, lines[name]), lines[name]
        config = stoker("show", "config", name, "-q").stdout
        needs = [line.split(None, 3)[3] for line in config.splitlines() if line.startswith("one accelerator needs")]
        assert needs == ([text] if text else []), (name, needs)
    assert "~" in lines["retinanet_b200"] and "~" not in lines["unet3d_h100"]
    both = stoker("show", "config", "default", "-q", "train.computation_time=0", "workflow.evaluation=true").stdout
    assert "needs                      no fixed rate: its computation takes no time\n" in both, both
    assert re.search(r"needs, evaluation +\S+ KiB/s", both), both
    print("   show config, show workloads: as MLPerf's table")


def throttled(tmp, n, name="run", **keys):
    """4 accelerators that need 200 samples/s of 100 KB each, on a store of 10 MB/s; later attempts are slower."""
    slower = 1 + n
    base = {"storage__store": "throttle+memory", "storage__throttle__bandwidth": 10e6 / slower, "framework": "pytorch",
            "dataset__record_length_bytes": 100000, "train__computation_time": 0.02 * slower, "reader__batch_size": 4,
            "reader__read_threads": 2}
    base.update(keys)
    out = tmp / f"{name}{n}"
    files = base.pop("files", 208)  # 13 steps of 16 samples: none is read and dropped
    stoker("run", "-n", 4, *tiny(tmp / f"{name}data", out, fmt=base.pop("fmt", "npy"), files=files, **base))
    return out, load(out)


def fed(tmp):
    def once(n):
        out, result = throttled(tmp, n)
        need = result["need"]
        supply = need["supply"]
        # 100,000 bytes are a square of 316 by 316, and a header of 128
        size = 316 * 316 + 128
        assert need["sample_file_bytes"] == size and need["sample_decoded_bytes"] == 316 * 316, need
        assert need["sample_file_bytes_from"] == "layout" and need["target_percent"] == 90, need
        each = 200 / (1 + n)
        assert abs(need["samples_per_s"] - each) < 1e-9 and abs(need["bytes_per_s"] - each * size) < 1e-6, need
        assert abs(supply["accelerators_fed"] - supply["samples_per_s"] / each) < 1e-9, supply
        assert supply["of"] == "emulated" and supply["accelerators"] == 4, supply
        found = re.fullmatch(r"the emulated store fed (0\.\d) of 4", supply["text"])
        assert found and need["text"].endswith(": " + found[0]), need
        # 10 MB/s are 100 samples/s: half of one
        good = abs(supply["accelerators_fed"] - 10e6 / size / 200) < 0.03
        good &= abs(supply["returned_bytes_per_s"] * (1 + n) / 10e6 - 1) < 0.06
        return good, (out, supply, need)

    good, (out, supply, need) = attempts("half of one accelerator is fed", once)
    assert good, supply
    table = tmp / "runs.csv"
    stoker("report", out, "-o", tmp / "report.html", "--csv", table)
    with table.open() as f:
        row = next(csv.DictReader(f))
    assert row["supply"] == "emulated" and abs(float(row["accelerators_fed"]) - supply["accelerators_fed"]) < 1e-6, row
    assert abs(float(row["need_mib_per_s"]) - need["bytes_per_s"] / MIB) < 1e-6, row
    assert abs(float(row["files_mib_per_s"]) - supply["returned_bytes_per_s"] / MIB) < 1e-6, row
    stoker("audit", out, status=None)
    print(f"   10 MB/s for accelerators of 20 MB/s: {supply['text']}")


def forged(tmp):
    """The audit finds figures of need that do not follow from the others."""
    out, _ = throttled(tmp, 0, "forged", files=32)
    path = out / "result.json"
    honest = path.read_text()
    assert "need." not in stoker("audit", out, status=None).stdout
    for key in ("accelerators_fed", "samples_per_s", "bytes_per_s_at_target"):
        text, n = re.subn(rf'("{key}": ?)([0-9.e+-]+)', lambda m: m[1] + repr(float(m[2]) * 1.5),
                          honest[honest.index('"need"'):], count=1)
        assert n == 1
        path.write_text(honest[:honest.index('"need"')] + text)
        said = stoker("audit", out, status=None).stdout
        assert f"need.{key}" in said or f"need.supply.{key}" in said, (key, said)
    print("   forged figures of need are found")


def main():
    shown()
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        fed(tmp)
        forged(tmp)


if __name__ == "__main__":
    main()
