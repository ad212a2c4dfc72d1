"""Windows chosen by output.metric.exclude_start_steps and exclude_end_steps: what leaves out too much, or moves AU, fails
with the end that did it, and with exit status 3 where a target is asked for; what is small and harmless passes."""
# beside one
import concurrent.futures
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from told import told, verdict  # noqa: E402
from util import attempts, load, stoker, tiny  # noqa: E402

GROUP = "A chosen window of steps"
BASE = dict(fmt="npy", files=320, reader__access="native", storage__store="throttle+memory", reader__read_threads=2,
            dataset__record_length_bytes=100000, train__computation_time=0.01)
FAST = dict(storage__throttle__bandwidth=100e6)
SLOW = dict(storage__throttle__bandwidth=15e6)
# fast for the first third of 160 steps, then AU of about 40 %
CREDIT = dict(storage__throttle__bandwidth=8e6, storage__throttle__burst_bytes=12e6, storage__throttle__burst_bandwidth=200e6)
# AU of about 25 % for the first 40 steps
COLD = dict(storage__store="fault+throttle+memory", storage__fault__action="delay", storage__fault__op="read",
            storage__fault__nth=1, storage__fault__count=80, storage__fault__delay=0.04, storage__throttle__bandwidth=100e6)


def window(start=1, end=0):
    return dict(output__metric__exclude_start_steps=start, output__metric__exclude_end_steps=end)


# situation: (ranks, exit status with --check, level of the verdict, its facts: a reason and a figure that is 1, or figures; keys)
CASES = {
    "the last 100 of 160 steps, the slow ones, are left out (target 90 %)": (
        1, 3, "fail", [("window.raises", "only_end")], dict(**CREDIT, **window(end=100))),
    "the last 25 of 160 steps, slow ones, are left out (target 40 %)": (
        1, 3, "fail", [("window.raises", "only_end")], dict(**CREDIT, **window(end=25), metric__au=0.4)),
    "the first 45 of 160 steps, slow ones, are left out (target 90 %)": (
        1, 3, "fail", [("window.raises", "only_start")], dict(**COLD, **window(start=45))),
    "the first 70 of 160 steps, fast ones, are left out: AU is lower than it was (target 20 %)": (
        1, 3, "fail", [("window.lowers", "only_start")], dict(**CREDIT, **window(start=70), metric__au=0.2)),
    "30 steps of 160 at each end of an even run (target 50 %)": (
        1, 3, "fail", [("window.much", "both")], dict(**SLOW, **window(30, 30), metric__au=0.5)),
    "the last 40 of 160 steps of an even run on 2 ranks": (
        2, 3, "fail", [("window.much", "only_end")], dict(files=640, **FAST, **window(end=40))),
    "the last 40 of 80 steps in each of 2 epochs, the second slow": (
        1, 3, "fail", [("window.raises", "only_end")], dict(files=160, train__epochs=2, **CREDIT, **window(end=40))),
    "compat.dlio: 50 of 160 steps at each end, which throughput counts all the same (target 50 %)": (
        1, 3, "fail", [("window.counted", "high")], dict(**SLOW, **window(50, 50), compat__dlio="true", metric__au=0.5)),
    "30 of 80 evaluation steps are left out": (
        1, 3, "fail", [("window.choice", "eval")], dict(
            files=200, workflow__evaluation="true", dataset__num_files_eval=80, evaluation__eval_time=0.01, **FAST, **window(12, 12))),
    "8 steps of 160 at the start and 4 at the end of an even run": (
        1, 0, "pass", [("window.leaves", {"start": 9, "end": 3})], dict(**FAST, **window(9, 3))),
}
HONEST = {
    "the default window": (1, None, dict(**SLOW)),
    "the default window, epochs of 20 steps that start slowly": (1, None, dict(files=40, train__epochs=6, **SLOW)),
    "the default window, 2 ranks": (2, None, dict(**FAST)),
    "the default window, compat.dlio": (1, None, dict(**FAST, compat__dlio="true")),
    "the default window, checkpoints": (1, "checkpoint", dict(**FAST)),
    "nothing is left out": (1, None, dict(**SLOW, **window(start=0))),
}


def run(tmp, name, ranks, keys, attempt, check=True):
    tag = "".join(c for c in name if c.isalnum())[:60] + str(attempt)
    out = tmp / tag
    done = stoker("run", *(["--check"] if check else []), "-n", ranks, *tiny(f"/{tag}", out, **{**BASE, **keys}), status=None)
    assert (out / "result.json").exists(), done.stderr
    return done, load(out)


def planted(tmp, name, attempt):
    ranks, status, level, facts, keys = CASES[name]
    done, r = run(tmp, name, ranks, keys, attempt)
    said = [v for v in r["verdicts"] if v["check"] == "window"]
    found = {(f["reason"], k, v) for v in said for f in v["facts"] for k, v in f.get("figures", {}).items()}
    want = {(reason, k, v) for reason, of in facts for k, v in (of if isinstance(of, dict) else {of: 1}).items()}
    right = (len(said) == 1 and said[0]["level"] == level and want <= found and done.returncode == status
             and "slow start" not in verdict(r, "steady") and ("FAIL window" in done.stdout) == (level == "fail"))
    return right, (done, r)


def honest(tmp, name, attempt):
    ranks, more, keys = HONEST[name]
    if more:
        keys = dict(keys, workflow__checkpoint="true", checkpoint__steps_between_checkpoints=40,
                    checkpoint__model_size_bytes=2000000, checkpoint__fsync="false",
                    checkpoint__checkpoint_folder=tmp / f"save{attempt}")
    done, r = run(tmp, name, ranks, keys, attempt, check=False)
    return not any(v["check"] == "window" and v["level"] == "fail" for v in r["verdicts"]), (done, r)


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(4) as ex:
        tmp = pathlib.Path(tmp)
        first = {n: ex.submit(planted, tmp, n, 0) for n in CASES}
        clean = {n: ex.submit(honest, tmp, n, 0) for n in HONEST}
        for name in CASES:
            right, (done, r) = attempts(name, lambda n, c=name: planted(tmp, c, n), first[name].result())
            told(GROUP, name, verdict(r, "window"))
            print(f"{'ok' if right else 'MISSED':7}{name}: exit status {done.returncode}\n       {verdict(r, 'window')}\n"
                  f"       {verdict(r, 'steady')}")
            wrong += [] if right else [name]
        for name in HONEST:
            right, (done, r) = clean[name].result()
            print(f"{'ok' if right else 'MISSED':7}{name}: {verdict(r, 'window')}")
            wrong += [] if right else [name]
        # what a study or an audit reads back has the mark
        out = tmp / "marked"
        stoker("run", *tiny("/marked", out, **{**BASE, **CREDIT, **window(end=100)}))
        audit = stoker("audit", out, status=None)
        assert "FAIL    window: AU by DLIO's definition leaves out" in audit.stdout, audit
        table = tmp / "table.csv"
        stoker("report", out, "-o", tmp / "r.html", "--csv", table)
        assert "window" in table.read_text().splitlines()[1], table.read_text()
    assert not wrong, wrong


main()
