"""The short answer: whatever kind of run, a successful one prints at most 14 lines of 100 columns on stdout and stderr
together, leads with the whole run, names every check that is not ok, and keeps the rest for -v."""
# mostly waits
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import load, stoker, tiny  # noqa: E402

LINES, COLUMNS = 14, 100
SLOW = dict(fmt="npy", files=24, train__epochs=2, storage__store="throttle+memory", storage__throttle__latency=0.01,
            train__computation_time=0.01)
EVALUATED = dict(dataset__num_files_eval=12, workflow__evaluation="true", evaluation__eval_time=0.002)
LEVELS = {"fail": "FAIL", "warn": "WARN", "unknown": "not known"}


def answer(*args, status=0, quiet=False, **kw):
    """What a default run prints, on both streams."""
    done = stoker("run", *[a for a in args if quiet or a != "-q"], status=status, **kw)
    text = done.stderr + done.stdout
    lines = text.splitlines()
    assert status or len(lines) <= LINES, f"{len(lines)} lines\n{text}"
    free = ("  results ", "  page ", "[", "stoker: ")  # paths, and what was said before
    assert all(len(line) <= COLUMNS or line.startswith(free) for line in lines), text
    return text


def check(text, out):
    """The text against result.json."""
    r = load(out)
    for v in r["verdicts"]:
        assert v["level"] == "pass" or re.search(rf"\b{v['check']}\b", text), (v["check"], text)
    ok = sum(v["level"] == "pass" for v in r["verdicts"])
    assert f"{ok} check{'s' if ok != 1 else ''} ok" in text or (ok == 0 and "no checks ok" in text), text
    t = r.get("training", {})
    if t.get("epochs_done"):
        assert f"whole-run AU    {t['whole_run_au_percent']:.1f} %" in text, (t["whole_run_au_percent"], text)
        assert "au_mean_percent" not in t or f"{t['au_mean_percent']:.1f} % by DLIO's definition" in " ".join(text.split()), text
    assert f"  results         {out}" in text and f"stoker report {out} -o" in text, text
    assert "!!!" not in text
    return r


def kinds(tmp):
    files = dict(SLOW, storage__store="throttle+posix")
    ckpt = dict(workflow__checkpoint="true", model__model_size_bytes=100000, checkpoint__fsync="false",
                checkpoint__checkpoint_folder=f"{tmp}/ckpt")
    yield "training on files", 1, files
    yield "the same again, from the page cache", 2, files
    yield "a store of the program", 1, SLOW
    yield "4 steps, all read ahead", 2, dict(SLOW, files=16, train__epochs=1, reader__read_threads=4, storage__throttle__latency=0.05)
    yield "everything at once", 2, dict(files, **EVALUATED, **ckpt, checkpoint__steps_between_checkpoints=4, run__trace="both",
                                        run__probe="true", run__probe_time=0.5)
    yield "evaluation alone", 1, dict(files, **EVALUATED, workflow__train="false", workflow__generate_data="false")
    yield "checkpoints alone", 2, dict(files, **ckpt, workflow__train="false", checkpoint__num_checkpoints_write=2,
                                       checkpoint__num_checkpoints_read=1, workflow__generate_data="false")
    yield "no computation", 1, dict(SLOW, train__computation_time=0)
    yield "one step", 1, dict(SLOW, files=2, train__epochs=1)
    yield "twelve epochs without a measured step", 1, dict(SLOW, files=2, train__epochs=12)


def main():
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as tmp:
        for i, (name, ranks, keys) in enumerate(kinds(tmp)):
            out = os.path.join(tmp, f"out{i}")
            data = f"{tmp}/eval" if "dataset__num_files_eval" in keys or "workflow__train" in keys else f"{tmp}/data"
            text = answer(*tiny(data, out, **keys), "-n", ranks)
            print(f"--- {name}\n{text}")
            r = check(text, out)
            title = text.split("default: ")[1].splitlines()[0]
            assert title.startswith(f"{ranks} accelerator") and title.endswith("complete"), title
            if r.get("evaluation") and "training" in r:
                assert re.search(r"^  (evaluation|FAIL) ", text, re.M), text
            if "checkpoint" in r:
                assert re.search(r"^  checkpoints ", text, re.M), text
            if keys.get("run__trace"):
                assert "(trace: trace.json, trace-R-of-2.pfw)" in text, text
            # what DLIO warns of is in its log
            if "training" in r:
                assert "!!!" in open(os.path.join(out, "dlio.log")).read()
        # all of it, and the short answer's head, with -v
        out = os.path.join(tmp, "long")
        full = stoker("run", "-v", *[a for a in tiny("/long", out, **SLOW) if a != "-q"])
        for what in ("whole-run AU", "Can the numbers be trusted?", "Where the time went", "Where the bytes went", "memory ",
                     "Training ", "epoch    steps", "measured ", "what limits it", "page ", "results "):
            assert what in full.stdout, (what, full.stdout)
        for v in load(out)["verdicts"]:
            assert " ".join(v["text"].split()) in " ".join(full.stdout.split()), v
        assert "!!!" in full.stderr
        # generation alone, and a run that fails
        assert len(answer(*tiny(f"{tmp}/only", None, workflow__train="false"), f"hydra.run.dir={tmp}/gen").splitlines()) == 1
        text = answer(*tiny("/fails", os.path.join(tmp, "fails"), **dict(SLOW, storage__store="fault+memory", storage__fault__op="read", storage__fault__nth=60)),
                      status=1)
        print(text)
        assert "failed" in text and "FAIL complete" in text, text
        # four rows and what they mean
        text = answer("--truth-table", *tiny(f"{tmp}/table", os.path.join(tmp, "table"), fmt="npy", files=16))
        print(text)
        assert "whole-run AU %" in text and "limited by" in text, text


if __name__ == "__main__":
    main()
