"""Evaluations are judged as training is: their files in the page cache, their bytes, too few steps, changes and single
waits; and runs of evaluations alone have a result, sentences and an exit status by the target."""
# beside one
import concurrent.futures
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import result_facts  # noqa: E402
from told import told, verdict  # noqa: E402
from util import attempts, left_out, load, stoker, tiny  # noqa: E402

GROUP = "Evaluations"
BASE = dict(fmt="npy", files=8, reader__access="native", storage__store="throttle+memory", reader__read_threads=2,
            dataset__record_length_bytes=100000, workflow__evaluation="true", dataset__num_files_eval=200,
            reader__batch_size_eval=2, evaluation__eval_time=0.01, storage__throttle__bandwidth=100e6)
ALONE = dict(workflow__train="false")


def level(check, wanted, *words):
    def look(r):
        found = [v for v in r["verdicts"] if v["check"] == check]
        return len(found) == 1 and found[0]["level"] == wanted and result_facts.told(found[0]["facts"], words)
    return look


def stalled_evaluation(r):
    f = result_facts.find(r["limit"]["facts"], "limit.evaluation_stalled")
    return f and f["epoch"] == 2 and 1.45 <= f["length"] < 1.6


def cause(word):
    return lambda r: r["limit"]["cause"] == word and r["limit"]["facts"][0]["reason"].startswith("limit.eval_")


# situation: (ranks, exit status with --check, verdict told, what must hold, keys)
CASES = {
    "evaluations alone, target met (90 %)": (
        1, 0, "evaluation", [level("evaluation", "pass"), level("order", "pass", "order.eval_proved"), cause("compute")], dict(**ALONE)),
    "evaluations alone on 2 ranks, 8 MB/s for 20 MB/s: target missed": (
        2, 3, "evaluation", [level("evaluation", "pass"), cause("storage")], dict(
            ALONE, storage__throttle__bandwidth=8e6)),
    "evaluations alone, target of 30 % met by a slow store": (
        1, 0, "evaluation", [level("evaluation", "pass"), cause("storage")], dict(
            ALONE, storage__throttle__bandwidth=10e6, metric__au=0.3)),
    "evaluations alone, opens of 12 ms": (
        1, 3, "evaluation", [cause("metadata")], dict(ALONE, storage__throttle__open_latency=0.012, evaluation__eval_time=0.003)),
    "evaluations alone of 5 steps, 8 batches prefetched, reads of 0.1 s": (
        1, 3, "evaluation", [level("evaluation", "fail", "evaluation.queue")], dict(
            ALONE, dataset__num_files_eval=10, reader__read_threads=4, reader__prefetch_size=8,
            storage__throttle__latency=0.1, evaluation__eval_time=0.05)),
    "evaluations alone, everything stops once for 1.2 s": (
        1, 3, "evaluation", [level("evaluation", "warn", "change.stall && length=1.2"), cause("stall")], dict(
            ALONE, storage__throttle__stall=1.2, storage__throttle__stall_at=0.5)),
    "training with two evaluations; one read of the second takes 1.5 s": (
        1, None, "evaluation", [
            level("evaluation", "warn", "change.stall && length=1.5"), level("steady", "pass"),
            lambda r: not result_facts.told(result_facts.verdict_facts(r, "evaluation"), ["evaluation.slow_start"]),
            stalled_evaluation], dict(
            storage__store="fault+throttle+memory", storage__fault__action="delay", storage__fault__op="read",
            storage__fault__nth=270, storage__fault__count=1, storage__fault__delay=1.5, storage__fault__path="valid",
            files=120, train__epochs=2, train__computation_time=0.01)),
    "evaluations alone, credit of 18 MB at 100 MB/s, then 8 MB/s: the target (60 %) is met only by the credit": (
        1, 3, "evaluation", [level("evaluation", "fail", "change.target")], dict(
            ALONE, dataset__num_files_eval=260, storage__throttle__bandwidth=8e6, storage__throttle__burst_bytes=18e6,
            storage__throttle__burst_bandwidth=100e6, metric__au=0.6)),
    "training with evaluations whose reads take 60 ms longer from the 120th on": (
        1, None, "evaluation", [level("evaluation", "warn", "change.fell"), level("steady", "pass")], dict(
            storage__store="fault+throttle+memory", storage__fault__action="delay", storage__fault__op="read",
            storage__fault__nth=120, storage__fault__count=0, storage__fault__delay=0.06, storage__fault__path="valid",
            files=160, train__computation_time=0.005)),
    "training with evaluations of 4 steps, 4 batches prefetched, reads of 80 ms": (
        1, None, "evaluation", [level("evaluation", "warn", "evaluation.")], dict(
            files=120, dataset__num_files_eval=8, reader__read_threads=4, storage__throttle__latency=0.08,
            evaluation__eval_time=0.03, train__computation_time=0.06)),
}


def run(tmp, name, attempt):
    ranks, status, _, looks, keys = CASES[name]
    tag = "".join(c for c in name if c.isalnum())[:60] + str(attempt)
    out = tmp / tag
    # an override, so that evaluations follow the generation in this run
    done = stoker("run", *(["--check"] if status is not None else []), "-n", ranks, *tiny(f"/{tag}", out, **{**BASE, **keys}),
                  status=None)
    assert (out / "result.json").exists(), done.stderr
    r = load(out)
    return done.returncode == (status or 0) and all(look(r) for look in looks), (done, r)


def tell(name, check, r, done, right, wrong):
    said = verdict(r, check) + ("" if "training" in r else " | " + r["limit"]["text"])
    told(GROUP, name, said)
    print(f"{'ok' if right else 'MISSED':7}{name}: exit status {done.returncode}\n       {said}")
    if not right:
        wrong.append(name)


def on_disk(tmp, wrong):
    """Real files: what of the evaluation set is in the page cache is told apart from the training set."""
    data = tmp / "data"
    keys = dict(fmt="npy", files=60, dataset__num_files_eval=60, dataset__record_length_bytes=200000, reader__access="native",
                workflow__evaluation="true", evaluation__eval_time=0.002, train__epochs=2)
    stoker("generate", *tiny(data, None, **keys))
    keys["workflow__generate_data"] = "false"

    def one(name, check, wanted, words, status=0, **more):
        out = tmp / "out"
        shutil.rmtree(out, ignore_errors=True)
        done = stoker("run", "--check", *tiny(data, out, **{**keys, **more}), status=None)
        r = load(out)
        tell(name, check, r, done, level(check, wanted, *words)(r) and (status is None or done.returncode == status), wrong)
        return r

    fs = os.statvfs(tmp)
    probe = one("evaluations alone, every byte of them cached", "eval-cache", "warn", ["cache.eval_measured"], None,
                workflow__train="false", metric__au=0.1)
    if "on tmpfs" in verdict(probe, "eval-cache") or fs.f_bsize == 0:
        left_out("evaluations on a disk: the temporary folder is in memory")
        return
    # nothing asked for a warm cache; written out, keep does
    one("evaluations alone, every byte of them cached (bytes)", "eval-bytes", "warn", ["bytes.cache"], 3, workflow__train="false",
        metric__au=0.1)
    one("evaluations alone, every byte of them cached, storage.page_cache=keep", "eval-cache", "warn", ["cache.eval_measured"], 0,
        workflow__train="false", metric__au=0.1, storage__page_cache="keep")
    one("evaluations alone, evicted before each", "eval-cache", "pass", ["cache.eval_held && cached=0"], workflow__train="false", metric__au=0.1,
        storage__page_cache="cold_epochs")
    one("evaluations alone, evicted before each (bytes)", "eval-bytes", "pass", ["bytes.eval_moved"], workflow__train="false",
        metric__au=0.1, storage__page_cache="cold_epochs")
    # evicted once: the second evaluation finds what the first one read
    r = one("two epochs, evicted before the first: the second evaluation is cached", "eval-cache", "warn",
            ["cache.eval_held && epoch=2", "cache.eval_measured && warm=1 && evaluations=2"], None, storage__page_cache="cold")
    assert level("eval-cache", "warn")(r)
    r = one("two epochs with evaluations, evicted before each", "eval-cache", "pass", [], None, storage__page_cache="cold_epochs")
    # between them other programs may bring files back
    assert r["evaluation"]["epochs"][1]["cached_at_start_bytes"] == 0, r["evaluation"]


def others(tmp):
    """Runs that only generate, or only write checkpoints, are what they were."""
    keys = dict(BASE, storage__store="posix", dataset__num_files_eval=8, workflow__train="false")
    keys.pop("workflow__evaluation"), keys.pop("storage__throttle__bandwidth")
    # evaluation is on in the workload, but not by an override
    argv = [a for a in tiny(tmp / "gen", tmp / "gen.out", **keys) if a != "workflow.evaluation=false"]
    assert "16 files written" in stoker("run", *argv).stdout
    assert not (tmp / "gen.out" / "summary.json").exists()
    # the same workload without generation evaluates
    argv = [a if a != "workflow.generate_data=true" else "workflow.generate_data=false" for a in argv]
    done = stoker("run", *argv)
    assert "1 of 1 evaluations" in done.stdout and "whole-run AU " in done.stdout, done.stdout
    assert load(tmp / "gen.out", "summary.json")["metric"]["eval_au_mean_percentage"] > 0
    save = stoker("run", *argv, "workflow.checkpoint=true", "checkpoint.model_size_bytes=1000000",
                  f"checkpoint.checkpoint_folder={tmp}/save", "checkpoint.fsync=false")
    assert "evaluation" not in load(tmp / "gen.out"), "a run of checkpoints evaluates nothing"
    assert "checkpoint" in save.stdout
    assert "no evaluation step is possible" in stoker("run", *argv, "dataset.num_files_eval=0", status=2).stderr


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(4) as ex:
        tmp = pathlib.Path(tmp)
        first = {n: ex.submit(run, tmp, n, 0) for n in CASES}
        for name in CASES:
            right, (done, r) = attempts(name, lambda n, c=name: run(tmp, c, n), first[name].result())
            tell(name, CASES[name][2], r, done, right, wrong)
        others(tmp)
    with tempfile.TemporaryDirectory() as tmp:
        on_disk(pathlib.Path(tmp), wrong)
    assert not wrong, wrong


main()
