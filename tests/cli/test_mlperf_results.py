"""Published results of MLPerf Storage (tests/data/mlperf), in the files of DLIO 2.0 and of the newer DLIO: read in
full, what is wrong with them is found, and nothing else."""
import json
import pathlib
import random
import re
import shutil
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1])]
from findings import check  # noqa: E402
from util import SOURCE, stoker  # noqa: E402

DATA = SOURCE / "tests/data/mlperf"
# of each leaf, by a part of its folder: what is found beyond notes, and what notes beside those on bytes, order and
# missing files; a text that has to be there
FOUND = {
    "unet3d_h100/run-1": (set(), set(), ""),
    "resnet50_h100/run-2": ({"steady"}, set(), "AU is 92.6 %, but the configured computation takes 86.6 %"),
    "cosmoflow-1acc": ({"cache"}, set(), "fits in the host's memory (248 GiB). DLIO itself flags 1 of 1 host"),
    "unet3d-1acc": ({"cache"}, set(), "is 1.93 times the memory of the host"),
    "MangoBoost": ({"steady"}, {"steps"}, "An epoch has 499 steps"),
    "Micron": ({"steady", "throughput"}, set(), "65.9 samples/s is an AU of 74.8 %, not 90.1 %"),
    "Nutanix": ({"steady"}, {"memory", "cache", "steps"}, "host_memory_GB is 0 for 20 of 21 hosts"),
    "Alluxio": (set(), {"hosts"}, "One host emulates 1 accelerator"),
    "20260724_141551": ({"steady", "config"}, {"memory"}, "host_memory_GB is 0 for 3 of 4 hosts"),
    # what only writes is a warning to the call that reads
    "20260723_140825": (set(), {"memory", "cache"}, "The checkpoint (911 GiB) is 0.23 times the memory of the hosts (3.94 TiB), "
                                                    "and this call only writes"),
    "YanRongTech": ({"cache"}, {"memory", "hosts"}, "(1007 GiB): it may have been read back from the page cache"),
    "Solidigm": (set(), {"cache"}, "is 0.28 times the memory"),
}
NOTES = {"bytes", "order", "complete"}
FACTS = {
    "unet3d_h100/run-1": dict(accelerators=2, hosts=1, files=28000, au=92.35141076380695, steps=2000, whole_au=91.69,
                              samples_per_s=39.771037104809814, read_mib_per_s=5560.359016205235),
    "resnet50_h100/run-2": dict(accelerators=20, files=4903, files_needed_by_steps=3198, au=92.56713484052372),
    "20260724_141551": dict(accelerators=16, hosts=4, files=148000, files_needed_by_memory=147597,
                            files_needed_by_steps=56000, read_mib_per_s=91.4503 * 1024, au=96.9229),
    "Alluxio": dict(files=7412, files_needed_by_memory=6770, au=97.4859, read_mib_per_s=5.7473 * 1024),
    "20260723_140825": dict(accelerators=64, hosts=4, checkpoint_over_3x_memory=0.0754, write_gib_per_s=50.3107),
    "YanRongTech": dict(accelerators=8, hosts=2, checkpoint_over_3x_memory=0.03466, load_gib_per_s=168.9382),
}


def of(results, part):
    return [r for r in results if part in r["folder"]][0]


def read(results):
    assert len(results) == len(FOUND)
    for part, (found, notes, text) in FOUND.items():
        r = of(results, part)
        got = r["findings"]
        assert {f["check"] for f in got if f["level"] != "note"} == found, (part, got)
        assert {f["check"] for f in got if f["level"] == "note"} - NOTES == notes, (part, got)
        assert not [f for f in got if f["level"] == "fail" or not f["advice"]], (part, got)
        assert text in " ".join(f["text"] for f in got), (part, got)
    for part, facts in FACTS.items():
        got = of(results, part)["facts"]
        for key, value in facts.items():
            assert abs(got[key] / value - 1) < 1e-3, (part, key, got[key], value)
    for r in results:
        # the loader of DLIO 2.0 shuffles, and reads the keys of its time
        if "/v1/" in r["folder"]:
            assert not [f for f in r["findings"] if f["check"] in ("order", "config", "complete")], r


def lines():
    text = stoker("audit", DATA).stdout
    told = re.sub(r"\n {6,}", " ", text)
    for part in FOUND:
        assert [line for line in told.splitlines() if part in line and "accelerator" in line], (part, text)
    # a name without a space cannot be wrapped
    assert not [line for line in text.splitlines()[2:] if len(line) > 100 and " " in line.strip()], text
    assert "AU 92.4 % (whole run 91.7 %), 39.771 samples/s, 5560 MiB/s, notes only" in told, text
    assert "written at 50.31 GiB/s, notes only" in told and "read at 168.9 GiB/s, warning: cache" in told, text
    assert "..." not in text, text  # whole sentences
    stoker("audit", "--check", DATA)


def leaf(part):
    return [p.parent for p in DATA.rglob("summary.json") if part in str(p)][0]


def worse(tmp):
    """What the published ones do not show."""
    copy = tmp / "copy"
    shutil.copytree(leaf("unet3d_h100/run-1"), copy)
    summary = json.loads((copy / "summary.json").read_text())
    metric = summary["metric"]
    for key in ("train_au_percentage", "train_throughput_samples_per_second"):
        metric[key] = [v * 0.9 for v in metric[key]]
    for key in list(metric):
        if "mean" in key or "stdev" in key:
            metric[key] *= 0.9
    metric["train_au_meet_expectation"] = "fail"
    summary["num_files_train"] = 2800
    (copy / "summary.json").write_text(json.dumps(summary))
    got = json.loads(stoker("audit", "--json", copy).stdout)["results"][0]["findings"]
    assert {"target", "steps"} <= {f["check"] for f in got if f["level"] == "warning"}, got
    assert "An epoch has 200 steps; MLPerf Storage asks for 500." in [f["text"] for f in got], got
    # means that do not follow from the lists
    metric["train_au_mean_percentage"] = 95
    metric["train_au_meet_expectation"] = "success"
    (copy / "summary.json").write_text(json.dumps(summary))
    stoker("audit", "--check", copy, status=3)


def versions(tmp):
    """What is missing does not change by which rules a result is judged; where nothing tells them, none are."""
    newer = ("Shuffling is on but", "MLPerf Storage v3 warns", "DLIO's formula", "had no effect")
    stats, configs = "per_epoch_stats.json", "configs"
    for i, (part, gone, said) in enumerate([
            ("unet3d_h100/run-1", (), ()), ("unet3d_h100/run-1", (stats,), ()), ("unet3d_h100/run-1", (stats, "name"), ()),
            ("unet3d_h100/run-1", (stats, configs), ()), ("unet3d_h100/run-1", (stats, "name", "keys"), ()),
            ("Micron", (stats,), ("the first step of an epoch out of AU",)), ("Micron", (stats, "name", "keys"), ()),
            ("20260724_141551", (), (newer[0], newer[3])), ("20260724_141551", ("0_" + stats,), (newer[0], newer[3])),
            ("20260724_141551", ("0_" + stats, "name"), (newer[0], newer[3])),
            ("Alluxio", (), (newer[1],)), ("Alluxio", ("0_" + stats,), (newer[1],))]):
        # a place that says nothing, where the tree is not what is left
        at = tmp / f"version-{i}" / (leaf(part).relative_to(DATA) if part == "Alluxio" else "1")
        shutil.copytree(leaf(part), at)
        for name in gone:
            if name == "keys":
                path = at / ".hydra/config.yaml"
                text = re.sub(r"  model: (\w+)", r"  model:\n    type: \1", path.read_text())
                path.write_text(re.sub(r" *(record_length\w*|model_size): .*\n", "", text))
                (at / ".hydra/overrides.yaml").unlink(missing_ok=True)
            elif name == "name":
                [p for p in (at / "configs", at / "dlio_config") if p.exists()][0].rename(at / ".hydra")
            elif (at / name).is_dir():
                shutil.rmtree(at / name)
            else:
                (at / name).unlink(missing_ok=True)
        found = json.loads(stoker("audit", "--json", at).stdout)["results"][0]["findings"]
        texts = " ".join(f["text"] for f in found)
        for text in (*newer, "the first step of an epoch out of AU"):
            assert (text in texts) == (text in said), (part, gone, text, texts)


def other_run(at, kept):
    """The result as another run would leave it, but for what is kept: dates, stamps, figures, or the steps of rank 0."""
    def moved(text):
        return text if "dates" in kept else re.sub(r"(-\d\dT)(\d\d):", lambda m: f"{m[1]}{(int(m[2]) + 1) % 24:02}:", text)
    summary = json.loads((at / "summary.json").read_text())
    metric = summary["metric"]
    for key in () if "figures" in kept else metric:
        if isinstance(metric[key], list):
            metric[key] = [v * (1.0001 + 0.00001 * i) for i, v in enumerate(metric[key])]
        elif "checkpoint_io_mean" in key:
            metric[key] *= 1.0001
    summary["hostname"] = "another"
    (at / "summary.json").write_text(moved(json.dumps(summary)))
    for path in at.glob("*per_epoch_stats.json"):
        text = moved(path.read_text())
        if "stamps" not in kept:
            text = re.sub(r"\.(\d{6})\"", lambda m: f'.{random.randrange(1000000):06}"', text)
        path.write_text(text)
    for path in at.glob("*_output.json"):
        output = json.loads(path.read_text())
        for epoch in [e for e in output if e.isdigit()]:
            for name, times in {} if "steps" in kept and path.name[0] == "0" else output[epoch]["load"].items():
                output[epoch]["load"][name] = [t * (1 + 0.3 * random.random()) for t in times]
        path.write_text(json.dumps(output))


def copied(tmp):
    """A run that is there twice, in whole or in part, is a failure of both; another run is none."""
    training, steps, checkpoint = leaf("unet3d_h100/run-1"), SOURCE / "tests/data/dlio-output", leaf("20260723_140825")
    for i, (source, kept, why) in enumerate([
            (training, None, "at the same moments"), (training, "dates stamps", "stamps of an epoch"),
            (training, "stamps", "stamps of an epoch"), (training, "figures", "figures of summary.json"),
            (training, "", None), (steps, "steps", "the times of the steps of an epoch"), (steps, "", None),
            (checkpoint, "figures", "figures of summary.json"), (checkpoint, "dates stamps", "stamps of an epoch or a checkpoint"), (checkpoint, "", None)]):
        at = tmp / f"copied-{i}"
        for number in ("1", "2"):
            shutil.copytree(source, at / number)
        if kept is not None:
            other_run(at / "2", kept.split())
        got = json.loads(stoker("audit", "--json", at, status=None).stdout)["results"]
        said = [[f["text"] for f in r["findings"] if "copy of the other" in f["text"]] for r in got]
        assert [len(t) for t in said] == ([1, 1] if why else [0, 0]), (source, kept, said)
        assert not why or all(why in t[0] for t in said), (source, kept, said)
        assert not why or "at least one result is invalid" in stoker("audit", "--check", at, status=3).stderr


def sides(tmp):
    """Submissions compared: rates of checkpoints, runs that lack a figure, and the warm-up."""
    write, training = leaf("20260723_140825"), leaf("20260724_141551")
    for name, read, saved in (("a", 100.0, 50.0), ("b", 110.0, 40.0)):
        for call, changes in (("1", {"save_checkpoint_io_mean_GB_per_second": saved}),
                              ("2", {"load_checkpoint_io_mean_GB_per_second": read})):
            at = tmp / "checkpoints" / name / call
            shutil.copytree(write, at)
            summary = json.loads((at / "summary.json").read_text())
            metric = {k: v for k, v in summary["metric"].items() if k == "checkpoint_size_GB"} | changes
            begin = int(call) + (name == "b") * 2
            (at / "summary.json").write_text(json.dumps(summary | {"metric": metric, "start": f"2026-07-23T1{begin}:08:47.212853",
                                                                   "end": f"2026-07-23T1{begin}:12:47.364014"}))
            (at / "0_per_epoch_stats.json").unlink()
    a, b = tmp / "checkpoints/a", tmp / "checkpoints/b"
    text = stoker("compare", a, b).stdout
    assert "checkpoint write rate (GiB/s): 50 -> 40 (-20.0 %)" in text, text
    assert "checkpoint read rate (GiB/s): 100 -> 110 (+10.0 %)" in text, text
    assert "there is nothing to compare" in stoker("compare", a, training, status=2).stderr
    # six calls: the first warms up, and one has stamps
    side = tmp / "TTA/results/seahorse/training/unet3d/run"
    for i in range(6):
        at = side / f"20260724_1{i}1551"
        shutil.copytree(training, at)
        other_run(at, ())
        summary = json.loads((at / "summary.json").read_text())
        summary["metric"] = {k: [x + i / 10 for x in v] if isinstance(v, list) else v for k, v in summary["metric"].items()}
        (at / "summary.json").write_text(json.dumps(summary | {"start": f"2026-07-24T1{i}:15:51.123456",
                                                               "end": f"2026-07-24T1{i}:45:51.654321"}))
        if i != 3:
            (at / "0_per_epoch_stats.json").unlink()
    base = tmp / "base"
    for i in range(3):
        shutil.copytree(leaf("unet3d_h100/run-1"), base / str(i))
        for _ in range(i + 1):
            other_run(base / str(i), ())
    text = stoker("compare", base, side).stdout
    assert "The first of the six runs of the second side ('20260724_101551') is its warm-up" in text, text
    assert "First: 3 runs. Second: 5 runs." in text and "3 of 3 and 1 of 5 have it" in text.replace("\n    ", " "), text
    assert re.search(r"change \+[\d.]+ points, 95 % interval", text), text


def others(tmp):
    text = stoker("plan", leaf("unet3d_h100/run-1"), "-n", "2,8").stdout
    assert "2 accelerators on 1 host, unet3d, 39.74 samples/s (5.43 GiB/s), AU 92.4 %" in text, text
    assert "older version" not in text, text
    said = stoker("plan", leaf("Alluxio"), "-n", "2", status=1).stderr
    assert "the configuration of" in said and "--point" in said, said
    text = stoker("plan", leaf("20260724_141551"), leaf("20260723_140825"), "--checkpoint", "912GB", "-n", "64").stdout
    assert "50.3 GiB/s" in text, text
    # a system's folder has all workloads: those of the one that is planned
    system = leaf("unet3d_h100/run-1").parents[1]
    assert "or name it (--model)" in stoker("plan", system, "-n", "2", status=2).stderr
    done = stoker("plan", system, "--model", "unet3d_h100", "-n", "2", "--json", tmp / "plan.json")
    assert "planned from the 1 result of this workload; 1 of others is left out" in done.stderr, done.stderr
    assert "from 1 point" in done.stdout and "resnet50" not in done.stdout, done.stdout
    assert "no findings" in stoker("audit", tmp / "plan.json").stdout
    # what lacks its configuration, or has only checkpoints, is left out
    done = stoker("plan", DATA / "v3", "-n", "32", "--json", tmp / "plan.json")
    assert "3 of 4" not in done.stderr and "4 of 5 results are left out, as nothing can be planned from them; the first: " in done.stderr
    assert "the configuration of" in done.stderr and "from 1 point" in done.stdout, done
    assert "no findings" in stoker("audit", tmp / "plan.json").stdout
    said = stoker("plan", leaf("unet3d_h100/run-1"), leaf("unet3d-1acc"), "-n", "2", status=2).stderr
    assert "results of different storage" in said and "'Juicedata/JuiceFS-cloud-nvme-distributed-cache'" in said, said
    text = stoker("compare", leaf("unet3d_h100/run-1"), leaf("unet3d-1acc")).stdout
    assert "2 ranks on 1 host | 1 rank on 1 host" in text, text
    assert "AU, whole run (%): 91.69" in text and "AU, by DLIO's definition (%): 92.35" in text, text
    assert not [line for line in text.splitlines() if len(line) > 100 and " " in line.strip()], text
    assert "(relative +" in text or "(relative -" in text, text
    sides(tmp)
    page, table = tmp / "page.html", tmp / "table.csv"
    text = stoker("report", DATA, "-o", page, "--csv", table).stdout
    for said in ("1 run that the page cache or memory may have served is left out",
                 "In 2 runs, the page cache may have served some or all of the reads.",
                 "In 1 result of checkpoints, the page cache may have served what was read back.",
                 "1 configuration is not ranked: the whole-run AU of its runs is unknown or impossible.",
                 "By whole-run AU, no configuration reaches the target of 90 %; by AU as DLIO and MLPerf define it, 3 of 3 do.",
                 "By whole-run AU, 2 of 3 reach the target of 90 %; by AU as DLIO and MLPerf define it, 3 of 3 do."):
        assert said in text, (said, text)
    assert "a check failed" not in text, text
    check(text, table)
    assert "system=HPE/Cray_C500_4xHDR200_1host" in table.read_text()
    text = page.read_text()
    assert "llama3-70b" in text and "DLIO's files of checkpoints do not say" in text
    assert "Not judged: this result has no training" not in text


def main():
    results = json.loads(stoker("audit", "--json", DATA).stdout)["results"]
    read(results)
    lines()
    with tempfile.TemporaryDirectory() as d:
        worse(pathlib.Path(d))
        versions(pathlib.Path(d))
        copied(pathlib.Path(d))
        others(pathlib.Path(d))


main()
