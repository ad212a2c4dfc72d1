#!/usr/bin/python3
"""What explain claims of real jobs against what they did: stored logs, and one job that is recorded now."""
# tier: long
# mostly waits
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "bench"), str(HERE.parent / "jobs")]
import explain  # noqa: E402
import jobs  # noqa: E402
import users  # noqa: E402
from util import SOURCE, STOKER, left_out, stoker  # noqa: E402

STORED = HERE.parent / "data" / "jobs"
# counted or told by order: these do not depend on how busy the machine is
ORDERLY = ("format", "files", "samples", "epochs", "workers", "batch", "order", "checkpoints", "ranks", "steps", "evaluations")


def wrong_of(name, truth, log, keys=None):
    truth = {k: v for k, v in truth.items() if keys is None or k in keys}
    tally, wrong = explain.battery(STOKER, [(name, truth, [str(log)])])
    claimed = sum(n[explain.EXACT] for n in tally.values())
    return wrong, claimed, len(truth)


def stored():
    for log in sorted(STORED.glob("*.strace.gz")):
        name = log.name[:-len(".strace.gz")]
        truth = explain.expected(json.loads((STORED / f"{name}.json").read_text()))
        wrong, claimed, asked = wrong_of(name, truth, log)
        assert not wrong, "\n".join(wrong)
        # not by claiming nothing
        assert claimed >= 0.7 * asked, f"{name}: only {claimed} of {asked} values are claimed and right"


def no_training():
    """A workload of a training is not invented for a job that shows none."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "job.yaml")
        for name in ("checksum", "not-thumbnails-by-pool"):
            done = subprocess.run([STOKER, "explain", str(STORED / f"{name}.strace.gz"), "-o", path], capture_output=True, text=True)
            assert done.returncode == 1 and "no" in done.stderr and len(done.stderr.splitlines()) == 1, done
            assert not os.path.exists(path)


def lacks(*modules):
    code = f"import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, {modules})))"
    return subprocess.run([jobs.PYTHON, "-c", code], capture_output=True).returncode != 0


def example():
    """The job of README.md, which makes its dataset itself: the files that it wrote are no cache."""
    if lacks("torch", "numpy"):
        left_out("examples/train.py: python3-torch not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        recording = os.path.join(folder, "recording")
        stoker("record", "-o", recording, "--", jobs.PYTHON, SOURCE / "examples/train.py", os.path.join(folder, "data"))
        values = {k: v.get("value") for k, v in json.loads(stoker("explain", recording, "--json").stdout)["values"].items()}
        want = {"format": "npz", "files": 64, "samples": 64, "epochs": 3, "workers": 2, "batch": 4, "steps": 48, "checkpoints": 3}
        assert {k: values.get(k) for k in want} == want, values


def equal(log, folder):
    """The workload makes all requests of the job, those of the short batch at the end of an epoch too."""
    yaml, data = folder / "job.yaml", f"dataset.data_folder={folder / 'data'}"
    said = stoker("explain", log, "-o", yaml).stderr
    assert "end with a batch" not in said and "one of which nothing is read" in yaml.read_text(), (said, yaml.read_text())
    stoker("record", "-o", folder / "run", "--", STOKER, "run", yaml, data, "workflow.generate_data=true", "train.computation_time=0",
           "storage.page_cache_files=0", "-o", folder / "result")
    same = json.loads(stoker("explain", log, "--fidelity", folder / "run", "--json").stdout)
    assert same["requests_equal"] == 1 and same["reads"]["log"] == same["reads"]["here"] > 84, same


def live():
    missing = [t for t in ("strace",) if not shutil.which(t)]
    if lacks("torch", "PIL"):
        missing.append("python3-torch")
    if missing:
        left_out(f"a job that is recorded now: {', '.join(missing)} not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        jobs.JOBS["live"] = dict(kind="raw", workers=2, files=42, batch=4, compute_ms=12)
        try:
            truth, logs = jobs.record("live", folder)
        except SystemExit as e:
            if "ptrace" not in str(e):
                raise
            left_out("a job that is recorded now: strace may not trace here")
            return
        wrong, claimed, asked = wrong_of("live", explain.expected(truth), logs[0], ORDERLY)
        equal(logs[0], pathlib.Path(folder))
        assert not wrong, "\n".join(wrong)
        assert claimed >= asked - 2, (claimed, asked)


def recorded_now():
    """What only a recording shows: the library of a framework, and batches over queues that nobody asks for."""
    if lacks("torch", "numpy", "PIL"):
        left_out("jobs that are recorded now: python3-torch or python3-pil not installed")
        return
    for name in ("tables-inline", "own-processes", "not-two-models"):
        with tempfile.TemporaryDirectory() as folder:
            truth, logs = users.record(name, folder, "record")
            said = json.loads(stoker("explain", logs[0], "--json").stdout)
            assert said["trains"] == (not name.startswith("not-")), said
            wrong, claimed, asked = wrong_of(name, explain.expected(truth), logs[0], ORDERLY)
            assert not wrong, "\n".join(wrong)
            if name == "not-two-models":
                assert said["values"]["framework"]["value"] == "PyTorch", said["values"]
                stoker("explain", logs[0], "-o", os.path.join(folder, "job.yaml"), status=1)


def page():
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "job.html")
        stoker("explain", STORED / "png-w2-checkpoint-steps.strace.gz", "-o", out)
        text = open(out).read()
        assert text.rstrip().endswith("</html>") and "http:" not in text.replace("http://www.w3.org/", "") and "https:" not in text
        data = json.loads(text.split('<script type="application/json" id="data">')[1].split("</script>")[0])
        assert len(data["lanes"]["lanes"]) >= 3 and data["lanes"]["windows"][0]["rows"], data["lanes"]
        assert any(m["kind"] == "checkpoint" for m in data["bytes"]["marks"]), data["bytes"]["marks"]
        assert {v["key"] for v in data["values"]} >= {"epochs", "batch", "workers", "compute_s"}
        # nothing but a page is written by this name
        stoker("explain", STORED / "png-w2-checkpoint-steps.strace.gz", "-o", os.path.join(folder, "x.pdf"), status=2)


def text():
    """The answer comes first; values have a column of their own, and a reason that several share is printed once."""
    for log in sorted(STORED.glob("*.strace.gz")):
        for verbose in ([], ["-v"]):
            lines = stoker("explain", log, *verbose).stdout.splitlines()
            assert lines[0].startswith("The job "), lines[0]
            if "A training was not seen: " in " ".join(lines[:6]):
                continue
            head = next(x for x in lines if x.startswith("  what "))
            known, value = head.index("how it is known"), head.index("value")
            for x in lines[lines.index(head) + 1:lines.index("", lines.index(head))]:
                assert len(x) <= 100, x
                if x[2] != " ":
                    assert x[known - 1] == x[value - 1] == " " and re.match("seen|inferred|assumed", x[known:]) and x[value:], x
            reasons = [x for x in lines if x.startswith("      ") and "not identifiable" in lines
                       and lines.index("not identifiable") < lines.index(x) < lines.index("", lines.index("not identifiable"))]
            assert len(reasons) == len(set(reasons)), reasons


def advice():
    """A training ends with what changes would give at most, and the command to type; what is no training with neither."""
    def of(name):
        log = STORED / f"{name}.strace.gz"
        said = json.loads(stoker("explain", "--json", log).stdout).get("advice", [])
        return {f["reason"]: f.get("figures", {}) for f in said}, stoker("explain", log).stdout

    # a worker that began two seconds after the others
    said, text = of("forkserver-workers")
    assert list(said) == ["advice.starts", "advice.one_wait"] and 1 < said["advice.one_wait"]["step"] < 3, said
    said, text = of("masks")
    # decoded by two workers, and hardly any time is spent in reads
    assert said["advice.processor"]["share"] < 0.05 and {"advice.cached_same", "advice.storage_same"} <= set(said), said
    more = said["advice.workers"]
    assert more["workers"] == 4 and 1.5 < more["times"] <= 2, said
    assert abs(more["step"] * more["times"] - said["advice.processor"]["step"]) < 1e-6, said
    last = text.rstrip().splitlines()[-1]
    assert last.startswith("  stoker run job.yaml ") and " reader.read_threads=4 reader.prefetch_size=8 " in last, last
    # the workload repeats what the workers computed beside their requests
    with tempfile.TemporaryDirectory() as folder:
        stoker("explain", STORED / "masks.strace.gz", "-o", os.path.join(folder, "job.yaml"))
        text = open(os.path.join(folder, "job.yaml")).read()
        assert "  recorded_work: True " in text and "preprocess_time" not in text, text
    said, text = of("array-shards")
    assert list(said) == ["advice.keeps_up"] and "read_threads" not in text.rstrip().splitlines()[-1], said
    said, text = of("checksum")
    assert not said and "what would change it" not in text, said


advice()
text()
page()
stored()
no_training()
example()
live()
recorded_now()
