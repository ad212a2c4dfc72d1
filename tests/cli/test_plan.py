"""stoker plan: what it says of points and results, its files, and what it refuses."""
# tier: long
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from sums_file import audited, edited_anywhere, failed, seal  # noqa: E402
from util import stoker, wait_quiet  # noqa: E402

POINT = "hosts=1,accelerators=8,samples_per_s=160,au=93.1"
H100 = ["--model", "unet3d_h100"]


def flat(text):
    return re.sub(r"\s+", " ", text)


def planned(tmp, *words):
    out = pathlib.Path(tmp) / "plan.json"
    text = stoker("plan", *words, "--json", out).stdout
    assert all(len(line) <= 100 for line in text.split("\nfrom ")[0].splitlines()), text
    return flat(text), json.loads(out.read_text())


def answers(tmp):
    page = pathlib.Path(tmp) / "plan.html"
    text, found = planned(tmp, "--point", POINT, *H100, "-n", "16,8,32", "-o", page)
    for part in ("16 accelerators on 2 hosts: unet3d_h100", "does it pass? not known: AU as DLIO defines it at least 4",
                 "if nothing else limits it; target 90 %", "is it enough? not known", "312 opens/s for the target",
                 "requests/s are not known without a result", "storage gives at least 1", "the storage gives more than 21.8 GiB/s",
                 "would settle it a run on 2 hosts with 8 on each", "most that pass at least 8"):
        assert part in text, (part, text)
    rows = found["plans"]
    assert [r["accelerators"] for r in rows] == [16, 8, 32] and [r["hosts"] for r in rows] == [2, 1, 4]
    # 8 H100 with 7 samples of 146,600,628 bytes (and a header) in 0.323 s, of which 0.9
    assert abs(rows[1]["needs"]["samples_per_s"] - 0.9 * 8 * 7 / 0.323) < 1e-6, rows[1]
    assert abs(rows[1]["needs"]["bytes_per_s"] / (0.9 * 8 * 7 / 0.323 * 146600628) - 1) < 1e-3, rows[1]
    assert rows[1]["bounded"] and rows[1]["passes"] == "yes" and rows[1]["au_percent"]["low"] < 93.1 < rows[1]["au_percent"]["high"]
    assert not rows[0]["bounded"] and rows[0]["passes"] == "not known" and "low" not in rows[0]["au_percent"]
    assert rows[0]["samples_per_s"]["at_least"] <= 160 and "low" not in rows[0]["samples_per_s"]
    html = page.read_text()
    assert not re.search(r"@[A-Z]+@", html) and '"most_that_pass"' in html
    assert stoker("plan", "--point", POINT, *H100, "-n", "16").stdout == stoker("plan", "--point", POINT, *H100, "-n", "16").stdout


def checkpoints(tmp):
    # S / B = 100 s, M = 50000 h / 8: sqrt(2 * 100 * 22.5e6) = 67,082 s
    text, found = planned(tmp, "--point", POINT, *H100, "-n", "8", "--checkpoint", "1TB", "--write-rate", "10GB/s",
                          "--interval", "1h", "--loss", "1%", "--local-rate", "1TB/s", "--local-share", "80")
    k = found["checkpoints"]
    assert abs(k["young_s"] - 67082.0) < 1 and abs(k["best"]["interval_s"] / k["exact_s"] - 1) < 1e-9, k
    assert k["asked"]["interval_s"] == 3600 and k["asked"]["goodput_percent"] < k["best"]["goodput_percent"] < 100, k
    assert k["local_interval_s"] < k["shared_interval_s"] and k["needed_write_bytes_per_s"] < 10e9, k
    for part in ("checkpoints of 931 GiB, 8 accelerators", "MLCommons' figure", "as asked every 1 h 00 min", "to lose 1 % at most: write at"):
        assert part in text, (part, text)
    # 14 bytes each
    text, found = planned(tmp, "-n", "100000", "--checkpoint", "105GiB", "--write-rate", "1KB/s")
    assert "1 GB/s more adds less than 0.001 points" in text, text
    # printed instead of words where no file follows
    for words in (["--json", "-n", "8"], ["-n", "8", "--json"], ["-n", "8", "--json", "-"]):
        shown = stoker("plan", "--parameters", "8B", "--write-rate", "1GB/s", *words).stdout
        assert json.loads(shown)["checkpoints"]["bytes"] == 8e9 * 14
    _, found = planned(tmp, "--point", POINT, *H100, "-n", "8", "--parameters", "1e9", "--pause", "2s")
    assert found["checkpoints"]["bytes"] == 14e9 and "young_s" not in found["checkpoints"]


def checkpoints_alone(tmp):
    """Neither results nor points: only how often to write, and nothing of what accelerators get."""
    text, found = planned(tmp, "-n", "8", "--checkpoint", "1TB", "--write-rate", "10GB/s")
    assert abs(found["checkpoints"]["young_s"] - 67082.0) < 1 and not found["plans"] and not found["points"], found
    assert text.startswith("checkpoints of 931 GiB, 8 accelerators") and "does it pass" not in text, text
    assert not audited(pathlib.Path(tmp) / "plan.json")[0]
    done = stoker("plan", "-n", "8", "--checkpoint", "1TB", "-o", pathlib.Path(tmp) / "none.html", status=2)
    assert "a page draws what accelerators get" in done.stderr and not (pathlib.Path(tmp) / "none.html").exists(), done


def measured_points(tmp):
    """What was measured is planned as it was; within it yes; beyond it at least that much; another model is no reason for a no."""
    points = ["--point", POINT, "--point", "hosts=1,accelerators=12,samples_per_s=162,au=62.6", *H100]
    rows = planned(tmp, *points, "-n", "12,8,6,13", "--hosts", "1")[1]["plans"]
    assert abs(rows[0]["au_percent"]["estimate"] - 62.6) < 1e-6 and rows[0]["bounded"], rows[0]
    assert [r["passes"] for r in rows] == ["no", "yes", "yes", "no"] and rows[3]["au_percent"]["estimate"] <= 62.6, rows
    rows = planned(tmp, "--point", POINT + ",largest=yes", *H100, "-n", "32", "--hosts", "4")[1]["plans"]
    assert rows[0]["samples_per_s"]["at_least"] <= 160 and rows[0]["by_rate_percent"]["estimate"] > 85, rows
    rows = planned(tmp, "--point", "hosts=1,accelerators=20,samples_per_s=32600,au=92,model=resnet50,accelerator=h100", *H100, "-n", "2")[1]["plans"]
    # HPE Cray C500 of MLPerf Storage v1.0: 20 ResNet-50, and 2 3D-UNet with 39.7 samples/s, AU 92.2 %
    assert rows[0]["passes"] == "not known" and rows[0]["bytes_per_s"]["at_least"] <= 3.8e9, rows
    assert abs(rows[0]["by_rate_percent"]["estimate"] - 91.6) < 3 and rows[0]["by_rate_percent"]["high"] > 91.6, rows


def none(tmp):
    text, _ = planned(tmp, "--point", "hosts=1,accelerators=4,samples_per_s=8", *H100, "-n", "8")
    assert "most that pass none: even one on each host misses the target" in text, text


def refused():
    same = f"{POINT},model=unet3d,accelerator="
    for status, words, message in (
            (2, [], "--accelerators N"),
            (2, ["-n", "8"], "nothing to plan from"),
            (2, ["-n", "0", "--point", POINT], "'0' is not a whole number from 1 to 10000000"),
            (2, ["-n", "8,", "--point", POINT], "'' is not a whole number"),
            (2, ["-n", "8,8", "--point", POINT], "8 is given twice"),
            (2, ["-n", "99999999999999999999", "--point", POINT, *H100], "is not a whole number"),
            (2, ["-n", "8", "--point", POINT], "the workload is not known"),
            (2, ["-n", "8", "--point", POINT, "--model", "unet3d_h1000"], "did you mean 'unet3d_h100'?"),
            (2, ["-n", "8", "--point", POINT + ",ua=3", *H100], "did you mean 'au'?"),
            (2, ["-n", "8", "--point", POINT.replace("160", "-160"), *H100], "more than 0"),
            (2, ["-n", "8", "--point", POINT.replace("160", "1e999"), *H100], "more than 0"),
            (2, ["-n", "8", "--point", POINT.replace("160", "100"), *H100], "higher than the rate allows"),
            (2, ["-n", "8", "--point", POINT.replace("160", "200"), *H100], "take at most 173.4 samples/s"),
            (2, ["-n", "8", "--point", same + "h100", "--point", same.replace("160", "80") + "a100"], "name the workload"),
            (2, ["-n", "8", "--hosts", "9", "--point", POINT, *H100], "each host needs one or more"),
            (1, ["-n", "241", "--point", POINT, *H100], "beyond 30 times (up to 240)"),
            (2, ["-n", "8", "--point", POINT, *H100, "--write-rate", "1GB/s"], "--checkpoint SIZE"),
            (2, ["-n", "8", "--point", POINT, *H100, "--checkpoint", "0"], "above 0"),
            (2, ["-n", "8", "--checkpoint", "105GiB", "--write-rate", "383"], "'383' has no unit: write 383MB/s, 383GB/s"),
            (2, ["-n", "8", "--parameters", "8X"], "K, M, B (1e9) or T"),
            (2, ["-n", "8", "--point", POINT, *H100, "--checkpoint", "1TB", "--loss", "0"], "between 0 and 100"),
            (2, ["-n", "8", "--point", POINT, "--model", "llama3_8b"], "nothing to plan"),
            (2, ["-n", "8", "--from", "/nonexistent"], "/nonexistent")):
        done = stoker("plan", *words, status=status)
        assert message in done.stderr and len(done.stderr.splitlines()) == 1 and not done.stdout, (words, done)


def run(tmp, name, *more):
    """Again while other programs make a run of it that nothing can be simulated from."""
    for n in range(8):
        folder = run_once(tmp, f"{name}{n}", *more)
        fleet = json.loads((folder / "result.json").read_text())["fleet"]
        if fleet["known"]:
            break
        print(f"attempts: {name}: made {n + 1} times: {fleet.get('why')}", flush=True)
        wait_quiet()
    return folder


def run_once(tmp, name, *more):
    folder = pathlib.Path(tmp) / name
    stoker("run", "default", "-n", "2", "workflow.generate_data=true", "workflow.evaluation=false", "storage.store=throttle+memory",
           "storage.throttle.bandwidth=20e6", "dataset.record_length_bytes=100000", "dataset.num_files_train=96",
           "dataset.num_samples_per_file=1", "reader.batch_size=2", "train.computation_time=0.01", "train.epochs=2", "-q", *more,
           "-o", folder)
    return folder


def results(tmp):
    """20 MB/s of samples of 100 kB are at most 200 samples/s, whatever the number; one accelerator takes 200."""
    a = run(tmp, "a")
    record = json.loads((a / "result.json").read_text())
    failed = [v["check"] for v in record["verdicts"] if v["level"] == "fail"]
    words = ["--despite-verdicts"] if failed else []
    if failed:
        done = stoker("plan", a, "-n", "4", status=1)
        assert "has failed checks" in done.stderr and "--despite-verdicts" in done.stderr, done
    done = stoker("plan", a, "-n", "1000000", *words, status=1)
    assert "trusted up to 1024 times (2048); measure 977 or more" in done.stderr and not done.stdout, done
    text, found = planned(tmp, "--from", a, "-n", "8,2", "--hosts", "1", *words)
    for r in found["plans"]:  # AU leaves out the start, so it is no lower than the share by rate
        low = [r[k].get("low", r[k].get("at_least")) for k in ("au_percent", "by_rate_percent")]
        assert low[0] >= low[1] - 1e-9, (r, low)
    rate = found["plans"][0]["samples_per_s"]
    assert found["plans"][0]["passes"] == "no" and rate["estimate"] < 240 and rate.get("low", rate.get("at_least")) < 205, found["plans"]
    assert found["plans"][0]["needs"]["requests_per_s"] > found["plans"][0]["needs"]["samples_per_s"] * 0.99, found["plans"][0]
    assert found["plans"][1]["by_rate_percent"]["high"] < 60, found["plans"][1]
    assert "throttle+memory' of this program" in text, text
    # another size, as --small leaves: in bytes, by the run's own limit; 2 3D-UNet need 6.4 GB/s
    text, other = planned(tmp, "--from", a, *H100, "-n", "2", "--hosts", "1", "--despite-verdicts")
    r = other["plans"][0]
    assert r["by"] == "simulation" and "follows from bytes" in text, (r, text)
    assert r["passes"] == "no" and r["bytes_per_s"]["estimate"] < 24e6 and r["by_rate_percent"]["estimate"] < 0.5, r
    assert r["bytes_per_s"].get("low", r["bytes_per_s"].get("at_least")) < 21e6, r
    pooled(tmp, a, words, found)
    runs_believed(tmp, a, words)
    b = run_once(tmp, "b", "dataset.record_length_bytes=50000")
    done = stoker("plan", a, b, "-n", "8", "--despite-verdicts", status=2)
    assert "results of different workloads" in done.stderr and len(done.stderr.splitlines()) == 1, done
    # damage and absence: one sentence, nothing is written
    cut = pathlib.Path(tmp) / "cut"
    shutil.copytree(a, cut)
    (cut / "result.json").write_bytes((a / "result.json").read_bytes()[:2000])
    out = pathlib.Path(tmp) / "none.json"
    for change in (None, "unlink"):
        if change:
            (cut / "result.json").unlink()
        done = stoker("plan", cut, "-n", "8", "--json", out, "-o", out.with_suffix(".html"), status=1)
        assert "result.json" in done.stderr and len(done.stderr.splitlines()) == 1 and not done.stdout, done
        assert not out.exists() and not out.with_suffix(".html").exists()
    # a check that failed: the result says so itself
    record["verdicts"].append({"check": "cache", "level": "fail", "text": "planted"})
    bad = pathlib.Path(tmp) / "bad"
    shutil.copytree(a, bad)
    (bad / "result.json").write_text(json.dumps(record))
    done = stoker("plan", bad, "-n", "8", status=1)
    assert "has failed checks" in done.stderr, done
    assert "failed checks, which were to be ignored" in flat(stoker("plan", bad, "-n", "8", "--despite-verdicts").stdout)


def pooled(tmp, a, words, alone):
    """A run and its repetition: the mean of both, wider than one by what they differ by. Checkpoints as they were written."""
    again, saved = run(tmp, "again"), pathlib.Path(tmp) / "saved"
    stoker("run", "default", "-n", "2", "-q", "workflow.train=false", "workflow.evaluation=false", "workflow.checkpoint=true",
           "checkpoint.num_checkpoints_write=1", "checkpoint.num_checkpoints_read=0", "model.model_size=1000000",
           f"checkpoint.checkpoint_folder={tmp}/ck", "-o", saved)
    despite = ["-n", "8,2", "--hosts", "1", "--despite-verdicts"]
    _, other = planned(tmp, "--from", again, *despite)
    text, both = planned(tmp, "--from", a, again, saved, *despite, "--checkpoint", "1GB")
    figures = [f["plans"][0]["by_rate_percent"]["estimate"] for f in (alone, other, both)]
    assert abs((figures[0] + figures[1]) / 2 - figures[2]) < 1e-6 and "the mean of 2 runs of 2 accelerators" in text, (figures, text)
    rate = json.loads((saved / "result.json").read_text())["checkpoint"]["save"]["throughput_mean_bytes_per_s"]
    k = both["checkpoints"]
    assert abs(k["write_bytes_per_s"] / rate - 1) < 1e-6 and "the highest rate of the results" in text, (k, rate, text)
    assert json.loads(json.dumps(planned(tmp, "--from", a, saved, *despite, "--checkpoint", "1GB", "--write-rate", "3GB/s")[1]))[
        "checkpoints"]["write_bytes_per_s"] == 3e9
    # absurd figures of a result take no longer than others
    record = json.loads((a / "result.json").read_text())
    record["schema"] = 1
    constant = {"quantiles": [0.01]}
    record["fleet"].update(known=True, au_percent=90, whole_au_percent=90, explanations=1, most_in_flight=1,
                           processors_taken_points=0, models=[{
        "modeled_whole_au_percent": 90, "ranks": 2, "hosts": 1, "steps_per_epoch": 10, "epochs": 1, "workers": 1,
        "window_batches": 2, "runs_per_batch": 1, "in_order": True, "samples_per_batch": 1, "bytes_per_batch": 1e6,
        "requests_per_batch": 1e9, "opens_per_batch": 1e9, "requests_per_s": 1000, "request_s": constant, "open_s": constant,
        "processors_per_host": 2, "compute_s": constant}])
    bad = pathlib.Path(tmp) / "absurd"
    shutil.copytree(a, bad)
    (bad / "measures.bin").unlink()
    (bad / "result.json").write_text(json.dumps(record))
    assert planned(tmp, "--from", bad, "-n", "2", "--hosts", "1", "--despite-verdicts")[1]["plans"][0]["by_rate_percent"]


def believed(tmp):
    """A plan is made again from what it names: a figure that does not follow is found."""
    path = pathlib.Path(tmp) / "plan.json"
    planned(tmp, "--point", POINT, *H100, "-n", "7", "--target", "88.5", "--checkpoint", "1TB", "--write-rate", "10GB/s")
    tried = edited_anywhere(path, {"build"}, every=8)
    assert tried >= 8, tried
    # the answers of another build are those of other rules; the rest follows
    tree = json.loads(path.read_text())
    tree["build"] = "0.1.0-000000000000"
    tree["plans"][0]["au_percent"]["low"] = 99.0
    seal(path, tree)
    found, unchecked, _ = audited(path)
    assert not found and any("another build" in u["why"] for u in unchecked), (found, unchecked)
    tree["points"][0]["by_rate_percent"] += 1
    seal(path, tree)
    assert failed(path) == {"figures"}, audited(path)


def moved_workload(tmp):
    """A workload that is a file is looked for beside the plan; where it is not there, nothing follows."""
    folder = pathlib.Path(tmp) / "own"
    (folder / "jobs").mkdir(parents=True)
    (folder / "jobs/my.yaml").write_text("model: {name: small}\nworkflow: {train: True}\ndataset: {format: npz, record_length_bytes: 4096, "
                                         "num_files_train: 64}\nreader: {batch_size: 2}\ntrain: {computation_time: 0.1}\n")
    stoker("plan", "--point", "hosts=1,accelerators=2,samples_per_s=30", "--model", "jobs/my.yaml", "-n", "2,4", "--json", "plan.json", cwd=folder)
    found, _, compared = audited(folder / "plan.json")
    assert not found and compared > 20, (found, compared)
    (folder / "jobs/my.yaml").unlink()
    found, unchecked, _ = audited(folder / "plan.json")
    assert not found and any("'jobs/my.yaml' that it plans is not there" in u["why"] for u in unchecked), (found, unchecked)


def runs_believed(tmp, a, words):
    """So it is with runs: those that the plan names are there, wherever they were moved with it."""
    folder = pathlib.Path(tmp) / "moved"
    folder.mkdir()
    stoker("plan", a.name, "-n", "6", "--hosts", "1", *words, "--json", folder / "plan.json", cwd=a.parent)
    path = folder / "plan.json"
    plan = json.loads(path.read_text())
    assert plan["runs"][0]["folder"] == a.name and plan["runs"][0]["run_id"], plan["runs"]
    assert plan["plans"][0]["by"] == "simulation", plan["plans"]
    assert failed(path) == {"identity", "figures"}, audited(path)  # nowhere, from here
    shutil.copytree(a, folder / a.name)
    found, _, compared = audited(path)
    assert not found and compared > 40, (found, compared)
    # a folder of that name that is none of its runs
    (pathlib.Path(tmp) / "elsewhere" / a.name).mkdir(parents=True)
    assert not audited(path, cwd=pathlib.Path(tmp) / "elsewhere")[0]

    def changed(change):
        tree = json.loads(json.dumps(plan))
        change(tree)
        seal(path, tree)
        return failed(path)

    def scaled(tree):
        for key in ("au_percent", "by_rate_percent"):
            for end in tree["plans"][0][key]:
                tree["plans"][0][key][end] *= 1.2

    assert "figures" in changed(scaled)
    assert "figures" in changed(lambda t: t["points"][0].update(samples_per_s=190.0))
    assert "identity" in changed(lambda t: t["runs"][0].update(run_id="another"))
    assert changed(lambda t: t["runs"].clear())
    assert changed(lambda t: t.update(asked=[w.replace("=6", "=5") for w in t["asked"]]))
    assert changed(lambda t: t["runs"].append(t["runs"][0])) >= {"identity"}
    assert changed(lambda t: t["runs"].extend(t["runs"] * 1000)) >= {"identity"}
    assert changed(lambda t: t["runs"].extend({"folder": f"none{i}"} for i in range(1024)))
    assert any("names more than 1024 runs" in f["text"] for f in audited(path)[0]), audited(path)
    assert not changed(lambda t: None)


def hostile(tmp):
    """A cut, foreign or hostile plan is a sentence, and nothing else happens."""
    path, out = pathlib.Path(tmp) / "plan.json", pathlib.Path(tmp) / "written"
    planned(tmp, "--point", POINT, *H100, "-n", "8")
    whole = path.read_text()
    for text in ("", "{", "[]", "{}", "null", whole[:len(whole) // 2], '{"plans": [], "program": "terraform"}', "\0" * 100):
        path.write_text(text)
        done = stoker("audit", path, status=1)
        assert len(done.stderr.splitlines()) == 1 and path.name in done.stderr, (text[:20], done)
        assert ("Restore the file" in done.stdout) == (text == whole[:len(whole) // 2]), (text[:20], done)
    word = ["--accelerators=8"]
    for asked in (None, 3, {}, [], [3], [None], word + ["--help"], word + ["-h"], word + [f"--json={out}"], word + [f"--output={out}"],
                  word + ["--from=/"], ["plan"], word * 2, ["--accelerators=1e9"], word + ["--hosts=-1", "--point=" + POINT],
                  word + ["--point=" + "x" * 10000], word * 100000, word + ["--point=" + POINT, "--model=/dev/null/x.yaml"],
                  word + ["--target=nan", "--point=" + POINT]):
        for runs in ([], [{"folder": "/dev/zero"}], [{"folder": 3}], [1, None], {"folder": "x"}, [{"folder": "../" * 500}]):
            tree = json.loads(whole)
            tree.update(asked=asked, runs=runs)
            seal(path, tree)
            done = stoker("audit", "--json", path, status=None)
            assert done.returncode in (0, 1) and len(done.stderr.splitlines()) <= 1, (asked, runs, done)
            assert [f for f in json.loads(done.stdout)["sums"][0]["findings"] if f["level"] == "fail"], (asked, runs)
            if not isinstance(asked, list) or len(asked) > 3:
                break
    assert not out.exists()
    # an earlier version sealed none
    tree = json.loads(whole)
    for key in ("asked", "runs", "build", "integrity"):
        del tree[key]
    path.write_text(json.dumps(tree))
    found, unchecked, _ = audited(path)
    assert not found and len(unchecked) >= 2, (found, unchecked)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        answers(tmp)
        believed(tmp)
        moved_workload(tmp)
        hostile(tmp)
        checkpoints(tmp)
        checkpoints_alone(tmp)
        measured_points(tmp)
        none(tmp)
        refused()
        results(tmp)
    print("plans from points and results, checkpoints, and what is refused")


if __name__ == "__main__":
    main()
