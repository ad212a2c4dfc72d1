"""The audit and the comparison of results, on the raw folders of a published study made with DLIO (its
mistakes are known) and on runs of our own, sound, unsound and damaged."""
import csv
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SOURCE, attempts, stoker, tiny  # noqa: E402

STUDY = SOURCE / "tests/data/seed-study/results"


def audit(*folders, **kw):
    return json.loads(stoker("audit", "--json", *folders, **kw).stdout)["results"]


def of(results, part):
    return [r for r in results if part in r["folder"] and r["trained"]][0]["findings"]


def expect(findings, check, level, words):
    hits = [f for f in findings if f["check"] == check and f["level"] == level and words in f["text"]]
    assert hits, f"no {level} '{check}' with '{words}' in {json.dumps(findings, indent=1)}"
    assert all(f["advice"] for f in hits)


def study():
    results = audit(STUDY)
    assert len(results) == 7 and sum(r["trained"] for r in results) == 5
    for part in ("results/6/", "4_prefetch_size_2", "4_read_threads_1", "4_record_length"):
        expect(of(results, part), "cache", "fail", "did not grow over the epochs")
        expect(of(results, part), "config", "warning", "model.model_size (499153191) had no effect")
        expect(of(results, part), "checkpoint", "fail", "Checkpoints held 10 KiB")
    expect(of(results, "results/6/"), "steady", "fail", "The measured window covers only the prefetch queue")
    expect(of(results, "results/6/"), "steady", "fail", "compute took 22.4 %")
    expect(of(results, "results/6/"), "ranks", "warning", "rank 0 has 99.4 %")
    expect(of(results, "4_prefetch_size_2"), "dataset", "fail", "512 MiB")
    expect(of(results, "4_prefetch_size_2"), "dataset", "fail", "by a factor of 3.66")
    expect(of(results, "4/2025"), "possible", "fail", "negative: -1069.5 samples/s")
    for part in ("results/6/", "4_read_threads_1", "4_record_length", "4/2025"):
        assert not [f for f in of(results, part) if f["check"] == "dataset"], part
    stoker("audit", "--check", STUDY / "6", status=3)


# generated into memory and read at a set speed: nothing here depends on this machine's disk
SOUND = dict(storage__store="throttle+memory", files=512, dataset__record_length_bytes=65536,
             reader__batch_size=1, train__epochs=2, train__computation_time=0.004)


def sound_run(tmp, out, slower=1, *more):
    keys = dict(SOUND, train__computation_time=SOUND["train__computation_time"] * slower)
    stoker("run", *tiny(tmp / "data", out, **keys), f"+storage.throttle.bandwidth={2e8 / slower}", *more)


def ours(tmp):
    def once(attempt):
        # when this machine wakes threads late, again with all times doubled
        sound = tmp / f"sound{attempt}"
        sound_run(tmp, sound, 2**attempt)
        found = audit(sound)[0]["findings"]
        # a machine may be busy with something else, and the run says so itself; AU is lower then
        busy = any(f["check"] in ("compute", "client") for f in found)
        left = [f for f in found if f["level"] == "fail" or
                f["check"] not in ("compute", "client", "steady", *(["whole-run"] if busy else []))]
        return not left, (sound, left)

    right, (sound, left) = attempts("sound run", once)
    assert right, left

    keys = dict(SOUND)
    trap = tmp / "trap"
    keys.update(files=8, reader__prefetch_size=8, reader__read_threads=8)
    stoker("run", *tiny(tmp / "data2", trap, **keys), "+storage.throttle.bandwidth=3000000")
    found = audit(trap)[0]["findings"]
    assert [f for f in found if f["check"] == "steady" and f["level"] == "fail"], found
    return sound, trap


# as people write them; the last of a key counts
ASSORTED = (
    ["++workload.model.name='a b'", "workflow.evaluation=False", "++workload.reader.nonsense=yes", "reader.data_loader=pytorch"],
    ["+workload.reader.extra=[1,2,{a: b}]", "workflow.evaluation=TRUE", "reader.file_shuffle=off", "reader.sample_shuffle=Random",
     "storage.store=throttle+memory", "storage.throttle.latency=1ms", "storage.throttle.bandwidth=1GB/s"],
    ["++workload.train.computation_time={mean: 0.001, stdev: 0.0001, type: normal}", "workload.train.seed=null", "~workload.evaluation",
     "++workload.reader.foo=null", "reader.batch_size=1", "reader.batch_size=2"],
    ["++workload.model.name=${workload.reader.data_loader}", "train.epochs=2", "++workload.train.epochs=1.0", "num_workers=3"],
    ["++workload.model.name='\\${x}'", "+workload.model.note='a: b, [c]'", "++workload.workflow={train: true, evaluation: false}",
     "++workload.framework.costs=none", "reader.in_order=0"],
    # deleted later; what the loader makes of other forms of a key; a section in which another name sets a key
    ["reader.batch_size=4", "~reader.batch_size", "framework=tensorflow", "framework.name=pytorch", "model.name=x", "model=unet3d",
     "++workload.reader={read_threads: 2}", "num_workers=4"],
    ["++workload.framework={name: pytorch}"],
)


def overrides(tmp):
    """Words, lists, maps and truth values of the overrides are those of .hydra/config.yaml, however they are written."""
    def identity(out):
        found = audit("--quick", out, status=None)[0]
        return ([f["text"] for f in found["findings"] if f["check"] == "identity"],
                sum(c["compared"] for c in found["checked"] if c["name"] == "identity"))

    for i, words in enumerate(ASSORTED):
        stoker("run", *tiny(tmp / "assorted.data", tmp / f"assorted{i}", storage__store="memory"), *words)
        texts, compared = identity(tmp / f"assorted{i}")
        assert not texts and compared > 45, (words, texts, compared)

    def changed(i, name, old, new):
        path = tmp / f"assorted{i}" / ".hydra" / name
        text = path.read_text()
        assert text.count(old) == 1, (old, text)
        path.write_text(text.replace(old, new))
        texts, _ = identity(tmp / f"assorted{i}")
        path.write_text(text)
        return texts

    for i, old, new in ((0, "name: a b", "name: a c"), (0, "evaluation: false", "evaluation: true"), (1, "file_shuffle: 'off'", "file_shuffle: seed"),
                        (1, "latency: 1ms", "latency: 2ms"), (1, "    - 2\n", "    - 3\n"), (2, "stdev: 0.0001", "stdev: 0.0002"),
                        (2, "foo: null", "foo: 1"), (4, "note: 'a: b, [c]'", "note: 'a: b, [d]'")):
        assert any("config.yaml" in t for t in changed(i, "config.yaml", old, new)), (i, old, new)
    # without 'workload.' Hydra puts a key where DLIO does not read it
    dlio = tmp / "dlio"
    shutil.copytree(SOURCE / "tests/data/dlio-output", dlio)
    given = dlio / ".hydra/overrides.yaml"
    given.write_text(given.read_text() + "- ++dataset.num_files_train=8\n")
    assert not identity(dlio)[0], identity(dlio)
    given.write_text(given.read_text() + "- ++workload.dataset.num_files_train=8\n")
    assert any("num_files_train=8" in t for t in identity(dlio)[0]), identity(dlio)
    # another spelling of the same is none
    assert not changed(0, "config.yaml", "nonsense: 'yes'", "nonsense: true"), "yes"
    assert not [t for t in changed(0, "config.yaml", "evaluation: false", "evaluation: 'False'") if "override" in t]


def damaged(tmp, sound):
    """A file of ours that is not whole is named in a sentence with status 1; never is the folder judged as DLIO's. All
    files, all kinds of damage: test_damaged_results.py."""
    copy = tmp / "damaged"

    def again():
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(sound, copy)

    for name, damage in (("0_output.json", b"{\"1\": {\"load\": "), ("0_per_epoch_stats.json", b"[1, 2]"),
                         ("result.json", b""), ("0_output.json", b"")):
        again()
        (copy / name).write_bytes(damage)
        done = stoker("audit", "--json", copy, status=1)
        result, = json.loads(done.stdout)["results"]
        assert name in done.stderr and result["tool"] == "stoker", done
        assert [f for f in result["findings"] if f["level"] == "fail" and name in f["text"]], result
        assert name != "result.json" or len(result["findings"]) == 1, result
    # JSON with other values is a change, and a finding
    again()
    (copy / "0_output.json").write_text('{"1": {"load": {"block1": ["x", -1]}}}')
    result, = audit(copy)
    assert [f for f in result["findings"] if f["check"] == "digest" and "0_output.json" in f["text"]], result
    # the configuration with other numbers, to which the measures do not belong
    config = (sound / ".hydra/config.yaml").read_text()
    numbers = list(re.finditer(r"(?<= )\d+$", config, re.M))
    for number in numbers:
        for other in ("0", "1", "3", "4000000000"):
            again()
            (copy / ".hydra/config.yaml").write_text(config[:number.start()] + other + config[number.end():])
            done = stoker("audit", "--quick", "--json", copy, status=None)
            assert done.returncode in (0, 1), (number.string[number.start() - 30:number.end()], other, done)
    again()
    (copy / "summary.json").write_text('{"num_accelerators": 3, "metric": {"train_au_percentage": [NaN, -Infinity, 4]}}')
    found = json.dumps(audit(copy))
    assert "missing or unreadable" in found and "'summary.json' was changed" in found, found
    for text, why in (('{"num_accelerators": 1e300, "metric": {}}', "num_accelerators must be a number from 1"),
                      (None, "summary.json' is missing")):
        again()
        (copy / "summary.json").unlink()
        if text:
            (copy / "summary.json").write_text(text)
        assert why in stoker("audit", copy, status=1).stderr, why
    # a result that is not DLIO's nor ours has no more to say
    for path in copy.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert "no result (summary.json)" in stoker("audit", copy, status=2).stderr
    assert "is not a folder" in stoker("audit", tmp / "none", status=2).stderr


def compare(sound, trap):
    c = json.loads(stoker("compare", "--json", STUDY / "6", STUDY / "4_read_threads_1").stdout)
    m = {x["measure"]: x for x in c["measures"]}
    # the study's best row is its worst by wall time; one run a side is no evidence of more
    assert m["AU, by DLIO's definition"]["first"]["mean"] > 3 * m["AU, by DLIO's definition"]["second"]["mean"]
    assert m["AU, whole run"]["first"]["mean"] < m["AU, whole run"]["second"]["mean"]
    assert all(x["verdict"] == "unknown" and "p" not in x for x in c["measures"]), c
    assert "reader.read_threads: 4 | 1" in c["differences"] and "ranks: 6 | 4" in c["differences"]
    assert any("invalid results on the first side: cache, checkpoint, steady" in w for w in c["warnings"])
    e = stoker("compare", "--check", STUDY / "6", STUDY / "4_read_threads_1", status=3).stderr
    assert "there are 1 and 1" in e, e
    text = stoker("compare", sound, trap).stdout
    assert "reader.prefetch_size: 2 | 8" in text, text
    assert "needs two folders" in stoker("compare", sound, status=2).stderr


def table(tmp, sound):
    """The table of runs says of each what the audit found, beside the column that was there before."""
    warned = tmp / "warned"
    sound_run(tmp, warned, 1, "++workload.reader.nonsense=3")
    stoker("report", STUDY, sound, warned, "-o", tmp / "r.html", "--csv", tmp / "runs.csv")
    rows = list(csv.DictReader((tmp / "runs.csv").open()))
    results = {os.path.abspath(r["folder"]): r["findings"] for r in audit(STUDY, sound, warned)}
    assert len(rows) == 7 and {"folder", "verdict", "findings", "left_out"} <= set(rows[0]), list(rows[0])
    for row in rows:
        found = results[row["folder"]]
        levels = {f["level"] for f in found}
        assert row["verdict"] == ("fail" if "fail" in levels else "warn" if "warning" in levels else "ok"), row
        assert row["findings"].split() == [f["check"] for f in found if f["level"] != "note"], (row, found)
        assert row["checks"] == ("failed" if "fail" in levels else "ok"), row
    said = stoker("report", STUDY, "-o", tmp / "s.html").stdout
    assert "5 of 5 runs have invalid results: cache (5), checkpoint (5), steady (2), dataset (1), possible (1)." in said, said
    of = {r["folder"]: r["verdict"] for r in rows}
    # an unknown key is worth a warning; in the sound run what other programs do meanwhile may be, too
    assert "fail" in of.values() and of[os.path.abspath(warned)] == "warn", of
    assert of[os.path.abspath(sound)] in ("ok", "warn"), of


def main():
    study()
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        sound, trap = ours(tmp)
        overrides(tmp)
        damaged(tmp, sound)
        compare(sound, trap)
        table(tmp, sound)


if __name__ == "__main__":
    main()
