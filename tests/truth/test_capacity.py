"""stoker capacity: the number that the arithmetic says; a search that was killed goes on; what cannot be searched is
refused with the reason."""
# beside one
import concurrent.futures
import json
import math
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from loop_device import Unavailable  # noqa: E402
from slow_fs import SlowFs  # noqa: E402
from sums_file import audited, edited_anywhere, row_removed, runs_gone  # noqa: E402
from util import SANITIZED, STOKER, attempts, left_out, stoker  # noqa: E402

# steps sleep, and requests of one sample each sleep in the throttle: other work on the machine hardly matters
BASE = ["default", "-q", "--time", "2", "train.computation_time=0.05", "reader.batch_size=1", "reader.access=native", "dataset.format=npy",
        "dataset.record_length_bytes=10000", "storage.store=throttle+memory"]
NEED = 0.9 / 0.05  # samples/s of an accelerator at the target
SAMPLE = 10000 + 128


def found(folder):
    return json.loads(pathlib.Path(folder, "capacity.json").read_text())


def known(tmp, name, truth, keys, *more, cause=None):
    def once(n):
        out = tmp / f"{name}-{n}"
        done = stoker("capacity", *BASE, *keys, *more, "-o", out, timeout=170)
        said = found(out)
        high = math.inf if said["high_95"] is None else said["high_95"]
        right = abs(said["accelerators"] - truth) <= 1 and said["low_95"] <= truth <= high and said["complete"]
        right = right and (not cause or said["cause"] == cause or said["client_limits"])
        return right, (said, done)

    ok, (said, done) = attempts(f"capacity {name}", once)
    assert ok, (name, truth, said["answer"], done.stdout)
    print(f"   {name}: {said['answer']}, the arithmetic says {truth}")
    return said, done


def bandwidth(tmp):
    said, done = known(tmp, "bandwidth", 3, [f"storage.throttle.bandwidth={3.5 * NEED * SAMPLE}"], cause="bandwidth")
    if not said["client_limits"]:  # a busy machine is said to be the limit, rightly
        assert not said["at_least"] and "The bytes limit" in said["limit"], said["limit"]
        assert re.search(r"^default: [234] accelerators \(95 %: \d to \d\) at AU 90 %$", done.stdout, re.M), done.stdout
    assert 0 < said["run_busy_percent"] <= said["client_busy_percent"] + 5, said  # the machine's clock has ticks
    limited = next(p["accelerators"] for p in said["points"] if p["fit_percent"] < 90)
    assert f" {said['cause']}, from {limited} accelerators on" in done.stdout, done.stdout
    assert abs(said["delivered_bytes_per_s"] / (3.5 * NEED * SAMPLE) - 1) < 0.1, said
    out = max(tmp.glob("bandwidth-?"))
    page = (out / "capacity.html").read_text()
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))
    assert [c["knee"] for c in data["curves"]] == [found(out)["accelerators"]], data["curves"]
    # the runs are results as others are
    text = stoker("audit", out, status=None).stdout
    assert f"{len(found(out)['runs'])} results" in text, text
    # and are not made again
    begin = time.monotonic()
    again = json.loads(stoker("capacity", *BASE, f"storage.throttle.bandwidth={3.5 * NEED * SAMPLE}", "--json", "-o", out).stdout)
    assert again["accelerators"] == found(out)["accelerators"] and time.monotonic() - begin < 5
    done = stoker("capacity", *BASE, "storage.throttle.bandwidth=1e6", "-o", out, status=2)
    assert "another workload or other keys" in done.stderr, done.stderr
    done = stoker("capacity", *BASE, f"storage.throttle.bandwidth={3.5 * NEED * SAMPLE}", "--checkpoint", "-o", out, status=2)
    assert "another workload or other keys" in done.stderr and "accelerators" in found(out), done.stderr


def believed(tmp):
    """An audit believes capacity.json as far as its runs give it."""
    out, checkpoints = tmp / "believed", tmp / "believed-c"
    stoker("capacity", *BASE, f"storage.throttle.bandwidth={1.5 * NEED * SAMPLE}", "--max", "4", "-o", out, timeout=170)
    stoker("capacity", "--checkpoint", "default", "-q", "--max", "2", "model.model_size_bytes=100000",
           f"checkpoint.checkpoint_folder={tmp / 'c'}", "-o", checkpoints)
    for folder, every, run, rows in ((out, 7, "1", "runs"), (checkpoints, 2, "2", "points")):
        path = folder / "capacity.json"
        assert not audited(path)[0], audited(path)
        edited_anywhere(path, {"complete", "key", "ended_by", "need_samples_per_s", "need_bytes_per_s"}, every)
        runs_gone(path, f"{run}/1")
        row_removed(path, rows)


def causes(tmp):
    """The same curve by bytes, by requests and by a queue: reads of another size tell them apart."""
    for name, cause, keys in [("requests", "requests", [f"storage.throttle.iops={2.5 * NEED}"]),
                              ("queue", "queue", ["storage.throttle.latency=0.04", "storage.throttle.concurrency=2"])]:
        said, _ = known(tmp, name, 2, keys, cause=cause)
        assert said["client_limits"] or "not their bytes" in said["limit"], said["limit"]


def none(tmp):
    said, done = known(tmp, "none", 0, ["storage.throttle.latency=0.08"])
    assert "default: no accelerator" in done.stdout or said["client_limits"], done.stdout
    assert re.search(r"with one +AU [56]\d\.\d %", done.stdout) or said["client_limits"], done.stdout


def prefetched(tmp):
    """What is read ahead is no rate of the steps that use it, and the time without reading is none of the storage: a store
    delivers what it can, no more and no less, to whoever keeps its readers busy."""
    most = 2.2 * 20 * 4 * SAMPLE

    def once(n):
        out = tmp / f"prefetched-{n}"
        stoker("capacity", *BASE, "reader.batch_size=4", "reader.read_threads=4", "reader.prefetch_size=8", "--time", "1", "--max", "4",
               f"storage.throttle.bandwidth={most}", "-o", out, timeout=170)
        runs = [(run["accelerators"], run["bytes_per_s"] / most) for run in found(out)["runs"]]
        return all(rate < 1.05 and (accelerators == 1 or rate > 0.87) for accelerators, rate in runs), runs

    ok, runs = attempts("capacity prefetched", once)
    print(f"   prefetched: {', '.join(f'{100 * rate:.0f} % with {n}' for n, rate in runs)}")
    assert ok, runs


def at_least(tmp):
    out = tmp / "most"
    done = stoker("capacity", *BASE, "--max", "3", "-o", out)
    said = found(out)
    assert said["at_least"] and said["accelerators"] == 3 and said["high_95"] is None, said
    assert "at least 3 accelerators" in done.stdout and "--max" in done.stdout, done.stdout


def killed(tmp):
    """SIGINT keeps what is known; SIGKILL loses one run; the same command goes on."""
    out, keys = tmp / "killed", [f"storage.throttle.bandwidth={3.5 * NEED * SAMPLE}"]
    for sig in (signal.SIGINT, signal.SIGKILL):
        before = len(list(out.glob("*/*/capacity_run.json")))
        p = subprocess.Popen([STOKER, "capacity", *BASE, *keys, "-o", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        while len(list(out.glob("[0-9]*/*/capacity_run.json"))) <= before and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.4)
        p.send_signal(sig)
        text, errors = p.communicate(timeout=60)
        if sig == signal.SIGINT:
            assert p.returncode == 1 and "interrupted" in errors and "at least 1 accelerator" in text, (p.returncode, text, errors)
            assert not found(out)["complete"]
    assert p.returncode == -signal.SIGKILL
    runs = len(list(out.glob("[0-9]*/*/capacity_run.json")))
    done = stoker("capacity", *[w for w in BASE if w != "-q"], *keys, "-o", out, timeout=170)
    assert done.stderr.count("already measured") >= runs >= 2, (runs, done.stderr)
    assert found(out)["complete"] and abs(found(out)["accelerators"] - 3) <= 1, found(out)["answer"]


def killed_anywhere(tmp):
    """Killed again and again, at any moment: no run that had its name is made again, and the search comes to its answer."""
    out, argv = tmp / "anywhere", [STOKER, "capacity", *BASE, "--max", "3", "--time", "1", "-o", tmp / "anywhere"]
    rng = random.Random(23)

    def ids():
        return {p.parent: json.loads(p.read_text())["run_id"] for p in out.glob("[0-9]*/[0-9]*/result.json")
                if p.parent.name.isdigit()}

    for _ in range(12):
        before = ids()
        p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            p.wait(rng.uniform(0.05, 2))
        except subprocess.TimeoutExpired:
            p.kill()
        p.wait()
        after = ids()
        assert all(after.get(folder) == run for folder, run in before.items()), (before, after)
        assert not (out / "capacity.json").exists() or found(out) is not None
        time.sleep(0.3)  # the run that it was making ends by itself
    before = ids()
    stoker(*argv[1:], timeout=170)
    assert found(out)["complete"] and found(out)["accelerators"] == 3, found(out)["answer"]
    assert all(ids()[folder] == run for folder, run in before.items()) and not list(out.rglob("*.partial"))


def refused(tmp):
    for words, status, why in [
            (["train.computation_time=0"], 2, "takes whatever it gets"),
            (["workflow.train=false"], 2, "does not train"),
            (["metric.au=0"], 2, "--au"),
            (["--au", "100"], 2, "from 1 to 99"),
            (["nonsense.key=1", "--strict"], 2, "nonsense"),
    ]:
        done = stoker("capacity", *BASE, *words, "-o", tmp / "refused", status=status)
        assert why in done.stderr and done.stderr.count("\n") == 1, (words, done.stderr)
    (tmp / "other").mkdir()
    (tmp / "other/mine.npz").write_text("mine")
    done = stoker("capacity", "default", "-q", f"dataset.data_folder={tmp}/other", "train.computation_time=0.1", "-o", tmp / "refused", status=2)
    assert "no training data" in done.stderr and os.listdir(tmp / "other") == ["mine.npz"], done.stderr
    (tmp / "other/mine.npz").rename(tmp / "other/notes.txt")  # no sample: it stays beside what is made and removed
    stoker("capacity", "default", "-q", f"dataset.data_folder={tmp}/other", "train.computation_time=0.1", "--max", "1", "--time", "1", "-o",
           tmp / "beside notes")
    assert os.listdir(tmp / "other") == ["notes.txt"]
    for there in ("absent", "present"):  # what was there before stays
        (tmp / "present").mkdir(exist_ok=True)
        done = stoker("capacity", "default", "-q", "--data", tmp / there / "a/b", "train.computation_time=0.05", "--max", "1", "--time", "1",
                      "-o", tmp / f"made {there}")
        assert "at least 1 accelerator" in done.stdout and not (tmp / "absent").exists(), done.stdout
    assert os.listdir(tmp / "present") == []
    # results of anything else: nothing is written beside them
    for name in ("result.json", "repeat.json", "0_output.json", "4"):
        (tmp / f"full {name}" / name).mkdir(parents=True)
        done = stoker("capacity", *BASE, "-o", tmp / f"full {name}", status=2)
        assert f"results of something else ('{name}')" in done.stderr and os.listdir(tmp / f"full {name}") == [name], done.stderr
    # without -o: no folder for results that there are none of
    (tmp / "here").mkdir()
    stoker("capacity", *BASE, "train.computation_time=0", status=2, cwd=tmp / "here")
    assert os.listdir(tmp / "here") == []


def memory(tmp):
    """What the system refuses memory for ends the search, and not what it knows."""
    if SANITIZED:
        return left_out("memory that is refused: sanitizers need the address space")
    for mib in (100, 140, 180, 220):
        done = stoker("capacity", *BASE, "--time", "1", "reader.read_threads=8", "--max", "64", "-o", tmp / f"memory {mib}", timeout=170,
                      preexec_fn=lambda mib=mib: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20)), status=None)
        if done.returncode == 0:
            break  # else not even one has enough, as sanitizers and libraries differ
    said = found(tmp / f"memory {mib}")
    assert done.returncode == 0 and said["at_least"] and said["complete"] and said["accelerators"] < 64, (done.stdout, done.stderr)
    assert re.match(r"\d+ accelerators: .*(memory|thread)", said["ended_by"]), said["ended_by"]


def few_files(tmp):
    """A dataset that is there is used as it is, and is enough for some accelerators only."""
    data = tmp / "few"
    stoker("generate", "default", f"dataset.data_folder={data}", "dataset.num_files_train=48", "dataset.format=npy", "-q")
    # the mark of a search whose files somebody has replaced since
    (data / "stoker_capacity.json").write_text('{"files": 7}')
    out = tmp / "few-out"
    done = stoker("capacity", "default", "--data", data, "-q", "--time", "2", "reader.batch_size=2", "train.computation_time=0.1", "-o", out)
    said = found(out)
    assert said["at_least"] and 1 <= said["accelerators"] <= 6 and "more files are needed" in said["ended_by"], said
    assert "more files are needed" in done.stdout.replace("\n                ", " "), done.stdout
    assert len(list((data / "train").rglob("*.npy"))) == 48
    done = stoker("capacity", "default", "--data", data, "-q", "reader.batch_size=48", "train.computation_time=0.1", "-o", tmp / "x", status=1)
    assert "more files are needed" in done.stderr, done.stderr


WORKLOAD = """model: {name: %s}
framework: pytorch
workflow: {train: true, evaluation: false}
train: {computation_time: %g, epochs: 1}
reader: {data_loader: pytorch, batch_size: 1, access: native, read_threads: 1, prefetch_size: 2}
dataset: {format: npy, record_length_bytes: 10000, num_files_train: 64}
metric: {au: 0.9}
"""


def two(tmp, name, a_step=0.05):
    """Two workloads, and the words that name them: two accelerators of the first."""
    folder = tmp / f"w-{name}"
    folder.mkdir()
    for of, step in (("first", a_step), ("second", 0.05)):
        (folder / f"{of}.yaml").write_text(WORKLOAD % (of, step))
    return [f"{folder}/first.yaml:2", f"{folder}/second.yaml:?"]


def several(tmp):
    """Two workloads at once, each with a folder of its own, which is made once and removed; what is refused."""
    words, data, out = two(tmp, "several"), tmp / "both", tmp / "several"
    done = stoker("capacity", *words, "--time", "2", "--max", "2", f"dataset.data_folder={data}", "second.yaml:reader.read_threads=2", "-o", out)
    said = found(out)
    other, = said["others"]
    assert (other["workload"], other["accelerators"], other["target_percent"]) == ("first.yaml", 2, 90), other
    assert " beside 2 of first.yaml" in said["answer"] and re.search(r"beside it +2 of first\.yaml, target 90 %: AU \d", done.stdout), done.stdout
    assert done.stderr.count(f"generating 1.6 MiB in '{data}/first.yaml'") == 1, done.stderr
    assert not data.exists() and not list(out.rglob("*.progress")), list(out.rglob("*.progress"))
    assert not audited(out / "capacity.json")[0], audited(out / "capacity.json")
    edited_anywhere(out / "capacity.json", {"complete", "key", "ended_by", "need_samples_per_s", "need_bytes_per_s", "target_percent"}, 7)
    for run in said["runs"]:
        keys = json.loads((out / run["folder"] / "result.json").read_text())["configuration"]
        beside = json.loads((out / run["folder"] / ".beside/first.yaml/result.json").read_text())
        assert keys["reader.read_threads"]["value"] == 2 and beside["configuration"]["reader.read_threads"]["value"] == 1
        assert beside["status"] == "interrupted" and 0 < run["others"][0]["au_percent"] <= 100.5, run
    assert "beside 2 of first.yaml" in (out / "capacity.html").read_text()
    for more, why in [([words[1], words[0].replace(":2", ":?")], "one workload is searched at a time"), ([words[0]], "a question mark"),
                      ([*words, "default"], "a question mark"), ([words[0].replace(":2", ":0"), words[1]], "'?' for the workload"),
                      ([*words, "third:reader.read_threads=1"], "no workload 'third'"), ([words[0], words[0].replace(":2", ":?")], "named twice"),
                      ([*words, "storage.store=memory"], "of which each process has its own"),
                      ([*words, "storage.store=throttle+posix"], "of which each process has its own"),
                      ([*words, f"first.yaml:dataset.data_folder={data}/second.yaml"], "the same folder of data")]:
        done = stoker("capacity", *more, f"dataset.data_folder={data}", "-o", tmp / "several-refused", status=2)
        assert why in done.stderr and done.stderr.count("\n") == 1, (more, done.stderr)
    # interrupted at any moment, it leaves no data and no process
    for after in (0.3, 1.2, 2.5):
        p = subprocess.Popen([STOKER, "capacity", *words, "-q", f"dataset.data_folder={data}", "-o", tmp / f"several {after}"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(after)
        p.send_signal(signal.SIGINT)
        assert "interrupted" in p.communicate(timeout=60)[1] and p.returncode == 1 and not data.exists(), after
        assert subprocess.run(["pgrep", "-f", str(data)], capture_output=True).returncode == 1, after


def shared(tmp):
    """On one store of known bandwidth: what is left for the second workload, and which of the two misses its target first."""
    def once(n):
        answers = []
        for name, step, bandwidth, truth in (("same", 0.05, 5.5 * NEED * SAMPLE, 3), ("faster", 0.04, 5.5 * 0.9 / 0.04 * SAMPLE, 3)):
            below = tmp / f"below-{name}-{n}"
            below.mkdir()
            with SlowFs(below, direct=1, bytes_s=int(bandwidth)) as mount:
                out = tmp / f"shared-{name}-{n}"
                stoker("capacity", *two(tmp, f"{name}-{n}", step), "-q", "--time", "3", "--max", "8", f"dataset.data_folder={mount}/d", "-o", out,
                       timeout=170)
            said = found(out)
            high = math.inf if said["high_95"] is None else said["high_95"]
            other, = said["others"]
            first = name == "same" or other["misses_first"] or said["client_limits"]
            answers.append((abs(said["accelerators"] - truth) <= 1 and said["low_95"] <= truth <= high and first, said["answer"], other))
        return all(a[0] for a in answers), answers

    try:
        ok, answers = attempts("capacity shared", once)
    except Unavailable as why:
        return left_out(f"two workloads on one store: {why}")
    print(f"   shared: {'; '.join(a[1] for a in answers)}; 3 and 3 are true")
    assert ok, answers


def main():
    with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(8) as pool:
        for case in [pool.submit(f, pathlib.Path(tmp)) for f in (bandwidth, believed, causes, none, prefetched, at_least, killed, killed_anywhere, refused, few_files, memory, several, shared)]:
            case.result()


if __name__ == "__main__":
    main()
