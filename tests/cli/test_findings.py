"""The findings of two designs of 40 rows, of repeated runs and of the seed study's results agree with their tables and
with each other (findings.py). What checks them finds planted contradictions."""
# takes 37 s
# tier: long
import os
import pathlib
import re
import shutil
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.dirname(__file__))
import findings  # noqa: E402
from util import SOURCE, left_out, stoker, tiny  # noqa: E402

# Sleeps: latency of the store, and computation.
WORKLOAD = """model: {{name: {name}}}
framework: pytorch
workflow: {{train: True}}
dataset: {{data_folder: data/x, format: npy, num_files_train: {files}, record_length_bytes: 4096}}
reader: {{data_loader: pytorch, batch_size: 1, read_threads: 1, prefetch_size: 1}}
train: {{epochs: {epochs}, computation_time: {compute}}}
storage: {{store: throttle+posix, throttle: {{latency: {latency}}}}}
metric: {{au: {au}}}
"""


def prepare(tmp, *workloads):
    folder = tmp / "config/workload"
    folder.mkdir(parents=True)
    for w in workloads:
        (folder / f"{w['name']}.yaml").write_text(WORKLOAD.format(**{"files": 60, "epochs": 1, "au": 0.8, **w}))


def design(tmp, rows):
    (tmp / "d.csv").write_text("model,processes,overrides,repeat\n" + "".join(
        f"{m},{n},{' '.join('++workload.' + o for o in overrides)},{repeat}\n" for m, n, overrides, repeat in rows))


def scaling(tmp):
    """Two models by processes, by two factors in all combinations and a third one."""
    prepare(tmp, {"name": "seg", "compute": 0.002, "latency": 0.003},
            {"name": "class", "compute": 0.006, "latency": 0.003, "au": 0.5})
    factors = [(), ("reader.read_threads=4",), ("reader.batch_size=2",), ("reader.read_threads=4", "reader.batch_size=2"),
               ("reader.prefetch_size=4",)]
    design(tmp, [(m, n, f, 1) for m in ("seg", "class") for n in (1, 2, 3, 4) for f in factors])
    return 40


def factors(tmp):
    """One factor at a time: accelerators, sizes, latencies; too few steps; runs from memory beside others."""
    prepare(tmp, {"name": "seg", "compute": 0.004, "latency": 0.004, "epochs": 2},
            {"name": "odd", "compute": 0.003, "latency": 0.003, "au": 0.6})
    one = [(), *((f"storage.throttle.latency={v}",) for v in (0.001, 0.002, 0.003, 0.0042, 0.008)),
           *((f"reader.read_threads={v}",) for v in (2, 3, 8)), *((f"reader.prefetch_size={v}",) for v in (2, 4, 1)),
           ("train.computation_time=0.003",), ("train.computation_time=0.008",), ("output.metric.exclude_start_steps=30",),
           ("dataset.record_length_bytes=16384",), ("reader.batch_size=30",), ("train.epochs=1",), ("reader.read_threads=0",),
           ("reader.read_threads=2", "reader.batch_size=2")]
    design(tmp, [(m, 2, f, 1) for m in ("seg", "odd") for f in one])
    return 40


def repeated(tmp):
    """Tests of chance, and intervals."""
    prepare(tmp, {"name": "seg", "compute": 0.003, "latency": 0.003})
    design(tmp, [("seg", 1, (), 3), ("seg", 2, (), 4), ("seg", 2, ("reader.read_threads=4",), 3),
                 ("seg", 2, ("storage.throttle.latency=0.00303",), 3), ("seg", 2, ("reader.prefetch_size=2",), 2)])
    return 15


def report(tmp, results, runs):
    done = stoker("report", results, "-o", tmp / "r.html", "--csv", tmp / "t.csv")
    rows = findings.Table(tmp / "t.csv").rows
    assert len(rows) == runs, (len(rows), runs)
    return done.stdout, findings.check(done.stdout, tmp / "t.csv")


def study(make, seen):
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        runs = make(tmp)
        stoker("study", "run", "d.csv", "-q", "--config-dir", "config", cwd=tmp, timeout=300)
        text, kinds = report(tmp, tmp / "results", runs)
        # judged in a hurry, fresh results say what they said
        for row in findings.Table(tmp / "t.csv").rows:
            assert not {"verdict", "figures"} & set(row["findings"].split()), row
        if make is scaling:
            planted(tmp, text)
        if shutil.which("gnuplot") and make in (scaling, repeated):
            (figures if make is scaling else marks)(tmp)
        copies(tmp, text, runs)
        if make is repeated:
            unlike(tmp)
        seen[make.__name__] = kinds
        if os.environ.get("FINDINGS_SHOW"):
            print(make.__name__, *findings.findings(text), sep="\n* ")


def copies(tmp, text, runs):
    """A copy of a result changes nothing but the sentence that says so."""
    first = next((tmp / "results").rglob("run-1"))
    shutil.copytree(first, first.parent / "run-1-copy")
    again, _ = report(tmp, tmp / "results", runs + 1)
    said = " 1 result is a copy of another one and not counted as a repetition; audit calls both invalid."
    before, after = findings.findings(text), findings.findings(again)
    assert said in after[0] and before[1:] == after[1:], after
    shutil.rmtree(first.parent / "run-1-copy")


def unlike(tmp):
    """Runs with equal overrides and other configurations are no repetitions: what differs is a factor."""
    (tmp / "more").mkdir()
    (tmp / "more/d.csv").write_text("model,processes,overrides,repeat\nseg,1,,1\n")
    stoker("study", "run", "d.csv", "-q", "--config-dir", tmp / "config", "train.computation_time=0.008", cwd=tmp / "more")
    done = stoker("report", tmp / "results", tmp / "more", "-o", tmp / "r.html", "--csv", tmp / "t.csv")
    findings.check(done.stdout, tmp / "t.csv")
    groups = [g for g in findings.Table(tmp / "t.csv").groups if g.ranks == 1]
    assert sorted((g.label, len(g.rows)) for g in groups) == [("", 3), ("train.computation_time=0.008", 1)], groups
    if all(g.counted for g in groups) and findings.differs(*groups, "au"):
        assert "with train.computation_time=0.003 (no override)" in done.stdout, done.stdout


def storages(tmp):
    """Data on two file systems are two configurations, whatever the name of the folder."""
    other = pathlib.Path("/dev/shm")
    if not os.path.ismount(other) or not os.access(other, os.W_OK):
        left_out("a report of two file systems: /dev/shm is not one that can be written")
        return
    with tempfile.TemporaryDirectory(dir=other) as memory:
        for name, folder in (("a", tmp / "data"), ("b", pathlib.Path(memory) / "data")):
            stoker("run", *tiny(folder, tmp / "two" / name, fmt="npy", files=64, storage__store="throttle+posix",
                                storage__throttle__latency=0.001))
    done = stoker("report", tmp / "two", "-o", tmp / "r.html", "--csv", tmp / "t.csv")
    findings.check(done.stdout, tmp / "t.csv")
    labels = [r["factors"] for r in findings.Table(tmp / "t.csv").rows]
    assert labels == ["", "dataset.data_folder=/dev/shm"], labels


def planted(tmp, text):
    """Each change makes the sentences wrong."""
    changes = [
        (r"highest with (\d) accel", lambda m: f"highest with {int(m[1]) % 4 + 1} accel"),
        (r"\((\d+)\.(\d) %\)", lambda m: f"({int(m[1]) + 1}.{m[2]} %)"),
        (r"throughput rises (\d)", lambda m: f"throughput rises {int(m[1]) + 1}"),
        (r" rises to ", lambda m: " falls to "),
        (r" Of (\d+) configurations", lambda m: f" Of {int(m[1]) + 1} configurations"),
        (r"points\)", lambda m: "points; 95 % confidence interval +1.0 to +2.0, over 1 and 1 runs)"),
        (r" is highest with", lambda m: " is best with"),
    ]
    for pattern, change in changes:
        wrong = re.sub(pattern, change, text, count=1)
        assert wrong != text, f"nothing like '{pattern}' was said:\n{text}"
        try:
            findings.check(wrong, tmp / "t.csv")
        except (AssertionError, KeyError):
            continue
        raise AssertionError(f"not found: '{pattern}' changed")


def figures(tmp):
    """One color a model in all files, and each model's target."""
    stoker("report", tmp / "results", "-o", tmp / "r.html", "--plots", tmp / "plots")
    scripts = {p.stem: p.read_text() for p in (tmp / "plots").glob("*.gp")}
    for name, text in scripts.items():
        for kind in ("png", "svg", "pdf"):
            assert (tmp / f"plots/{name}.{kind}").stat().st_size > 3000, (name, kind)
        assert "yellow" not in text and ("yrange [0:100]" in text) == (name != "throughput"), name
    color = {m: re.search(rf"index {i} using 1:[23] .*?rgb '(#\w+)'", scripts["whole_au"])[1] for i, m in enumerate(("class", "seg"))}
    assert len(set(color.values())) == 2, color
    for i, (model, target) in enumerate((("class", 50), ("seg", 80))):
        line = f"{target} with lines dashtype (8,5) linewidth 1.5 linecolor rgb '{color[model]}' title 'target of {model} ({target} %)'"
        assert line in scripts["whole_au"], scripts["whole_au"]
        for name in ("au", "throughput"):
            assert re.search(rf"index {i} using 1:[23] with (linespoints|points) linecolor rgb '{color[model]}'", scripts[name]), name
        for ranks in (1, 2, 3, 4):
            text = scripts[f"{model}_{ranks}_read_threads"]
            assert re.search(f"boxes (fill empty )?linecolor rgb '{color[model]}'", text), text
            assert f"'{model}, {ranks} accelerator{'s' if ranks > 1 else ''}: reader.read_threads'" in text, text


def marks(tmp):
    """Error bars of repeated runs; hollow marks where no run counts."""
    stoker("report", tmp / "results", "-o", tmp / "r.html", "--plots", tmp / "plots", "--csv", tmp / "t.csv")
    for group in findings.Table(tmp / "t.csv").groups:
        lines = (tmp / f"plots/{'whole_au' if not group.label else 'seg_2_' + group.label.split('=')[0].split('.')[-1]}.dat"
                 ).read_text().splitlines()
        fields = next(f for f in map(str.split, lines) if f[0].strip('"') == (group.label.split("=")[-1] or str(group.ranks)))
        counts, hollow, mean, bar = fields[1:5]
        if group.counted:
            assert abs(float(counts) - group.value("au")) < 0.01 and hollow == "nan", (fields, group)
            assert (bar != "nan") == (group.count() >= findings.NEEDED), (fields, group)
        else:
            assert counts == "nan" and float(hollow) >= 0, (fields, group)


def main():
    seen = {}
    threads = [threading.Thread(target=study, args=(make, seen)) for make in (scaling, factors, repeated)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert set(seen) == {"scaling", "factors", "repeated"}, "a design failed, see above"
    assert {"highest", "scaling", "factor", "limits"} <= seen["scaling"] & seen["factors"] | {"scaling"}, seen
    assert "scaling" in seen["scaling"] and "invalid" in seen["factors"], seen
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        storages(tmp)
        _, kinds = report(tmp, SOURCE / "tests/data/seed-study/results", 5)
        assert {"invalid", "nothing"} <= kinds, kinds


if __name__ == "__main__":
    main()
