"""--check, --min-samples-per-s and --repeat: the number that decides is the whole run's, and of repetitions the lower end
of its interval; repetitions begin alike."""
# tier: long
import json
import math
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "truth"))
from sums_file import audited, edited_anywhere, failed, runs_gone, seal  # noqa: E402
from told import told  # noqa: E402
from util import SANITIZED, STOKER, left_out, load, stoker, tiny  # noqa: E402

T_95 = {3: 4.302653, 4: 3.182446}  # of Student, two-sided, for so many runs
STEADY = dict(files=60, fmt="npy", dataset__record_length_bytes=20000, reader__batch_size=1, train__computation_time=0.004)
MEMORY = dict(STEADY, storage__store="throttle+memory", storage__throttle__latency=0.001)


def trap(tmp):
    """8 steps, 8 batches read ahead: DLIO's AU is near 100, two thirds of the time are computed."""
    out = tmp / "trap"
    keys = dict(files=8, fmt="npy", dataset__record_length_bytes=100, reader__batch_size=1, reader__read_threads=4,
                reader__prefetch_size=2, train__computation_time=0.1, storage__store="throttle+memory",
                storage__throttle__latency=0.1)
    done = stoker("run", "--check", *tiny("/trap", out, **keys), status=3)
    training = load(out)["training"]
    assert training["au_mean_percent"] > 90 > 85 > training["whole_run_au_percent"], (training["au_mean_percent"], training["whole_run_au_percent"])
    line, *more = done.stderr.splitlines()  # a line for each reason, which begins with what failed
    assert line.startswith("stoker: check: AU of the whole run ") and more[-1].endswith(": exit status 3"), done.stderr
    assert f"{training['whole_run_au_percent']:.2f} % is below the target 90 %" in line, line
    assert len(more) == 1 and re.match("stoker: check: the verdicts? '[^']*steady[^']*' ", more[0]), more
    told("run --check", "8 steps, all read ahead: AU by DLIO's definition is near 100 %", line)


def rates(tmp):
    argv = tiny("/rates", tmp / "rates", metric__au=1, **MEMORY)
    stoker("run", "--min-samples-per-s", "1", *argv)  # AU is not asked about
    e = stoker("run", "--min-samples-per-s=1e5", *argv, status=3).stderr
    rate = load(tmp / "rates")["training"]["whole_run_samples_per_s"]
    assert f"check: {rate:.6g} samples/s over the whole run, below the required 100000 (--min-samples-per-s): exit status 3" in e, e
    for wrong in ("x", "-1", "nan", "inf", ""):
        e = stoker("run", "--min-samples-per-s", wrong, *argv, status=2).stderr
        assert f"'{wrong}' is not a number from 0 to" in e, e


def page_cache(tmp):
    """On the disk of this machine: the second run is served from memory."""
    keys = dict(STEADY, files=24, dataset__record_length_bytes=400000, train__computation_time=0.01, metric__au=0.01)
    data, out = tmp / "data", tmp / "warm"
    stoker("run", *tiny(data, out, **keys))
    result = load(out)
    if "page_cache" not in result["training"]["epochs"][0] or result["storage_path"]["file_system"] in ("tmpfs", "ramfs"):
        left_out("a warm page cache: the temporary folder lies in memory, or its page cache is not known")
        return
    e = stoker("run", "--check", *tiny(data, out, **keys), status=3).stderr
    assert "% of the bytes came from the page cache, above the 10 % allowed" in e and "exit status 3" in e, e
    told("run --check", "a dataset that is in the page cache, and nothing asks for that", e)
    for how in ("keep", "cold_epochs"):  # on a busy machine the verdict 'client' may fail
        done = stoker("run", "--check", *tiny(data, out, storage__page_cache=how, **keys), status=None)
        assert "page cache" not in done.stderr and (done.returncode == 0 or "'client'" in done.stderr), done.stderr
    stoker("run", *tiny(data, out, **keys))  # nothing is asked
    # repetitions begin cold by themselves, the first and the others
    shutil.rmtree(out)
    done = stoker("run", "--check", "--repeat", "2", *tiny(data, out, **keys), status=None)
    assert "page cache" not in done.stderr, done.stderr
    assert "the dataset is evicted from it before every epoch" in done.stdout, done.stdout
    for k in (1, 2):
        ran = load(out / str(k))
        [epoch] = ran["training"]["epochs"]
        assert epoch["page_cache"]["cached_at_start_bytes"] < 1e6 < epoch["page_cache"]["cached_before_eviction_bytes"], epoch
        assert "storage.page_cache=cold_epochs" in (out / str(k) / ".hydra/overrides.yaml").read_text()
    # asked for, but the first one began cold
    subprocess.run([STOKER, "run", *map(str, tiny(data, tmp / "cold", storage__page_cache="drop_behind", **keys))], check=True,
                   capture_output=True)
    e = stoker("run", "--check", "--repeat", "2", *tiny(data, out, storage__page_cache="keep", **keys), status=3).stderr
    assert "the runs did not start alike" in e, e
    told("run --check", "two repetitions, the first on an empty page cache, the second on a full one", e)


def of_runs(out, n):
    return [load(out / str(k))["training"] for k in range(1, n + 1)]


def interval(values):
    mean = statistics.mean(values)
    reach = T_95[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - reach, mean + reach


def summary(tmp):
    """The figures of the summary are those of the runs; the lower end decides."""
    out, argv = tmp / "three", tiny("/three", tmp / "three", metric__au=0.01, **MEMORY)
    done = stoker("run", "-n", "2", "--repeat", "3", *argv)
    together, runs = load(out, "repeat.json"), of_runs(out, 3)
    assert len({load(out / str(k))["run_id"] for k in (1, 2, 3)}) == 3
    for key, mine, digits in (("whole_au_percent", "whole_run_au_percent", 1),
                              ("whole_throughput_samples_per_s", "whole_run_samples_per_s", None)):
        mean, low, high = interval([r[mine] for r in runs])
        said = together[key]
        assert all(math.isclose(x, y, rel_tol=1e-5) for x, y in
                   ((said["mean"], mean), (said["low_95"], low), (said["high_95"], high))), (said, mean, low, high)
        if digits:
            assert f"{mean:.1f} % of the whole run" in done.stdout, done.stdout
            assert f"95 % interval {low:.1f} to {min(high, 100):.1f}" in done.stdout, done.stdout
    assert len(done.stdout.splitlines()) <= 12 and max(map(len, done.stdout.splitlines())) <= 100 + len(str(tmp)), done.stdout
    # the mean passes, its lower end does not
    mean, low, _ = interval([r["whole_run_samples_per_s"] for r in runs])
    done = stoker("run", "-n", "2", "--repeat", "3", "--min-samples-per-s", "1e4", *argv, status=3)
    assert "(the lower end of the 95 % interval over 3 runs), below the required 10000 (--min-samples-per-s)" in done.stderr, done.stderr
    mean, low, _ = interval([r["whole_run_samples_per_s"] for r in of_runs(out, 3)])
    assert f"check: {low:.6g} samples/s" in done.stderr, (low, done.stderr)
    assert load(out, "repeat.json")["check_passed"] is False
    # fewer: no interval, and that is said; what the earlier command left is no result of this one
    done = stoker("run", "--repeat", "2", "--min-samples-per-s", "1", *argv)
    assert "an interval needs 3 runs" in done.stdout and "low_95" not in load(out, "repeat.json")["whole_au_percent"]
    assert not (out / "3/result.json").exists() and load(out, "repeat.json")["check_passed"] is True
    assert "one run: no interval" in stoker("run", "--repeat", "1", *argv).stdout
    # of one whose folders have gaps neither
    stoker("run", "--repeat", "3", *argv)
    shutil.rmtree(out / "2")
    stoker("run", "--repeat", "1", *argv)
    assert not (out / "3/result.json").exists() and not failed(out / "repeat.json"), audited(out / "repeat.json")
    # a single run's result beside the repetitions would be taken for one of them
    stoker("run", *argv)
    stoker("run", "--repeat", "3", *argv)
    assert not (out / "result.json").exists()
    assert json.loads(stoker("compare", "--json", out, out / "1").stdout)["runs"] == [3, 1]


def values_of(few):
    """The statistics of three runs, as repeat.json has them."""
    for key in ("whole_au_percent", "whole_throughput_samples_per_s"):
        values = [r[key] for r in few["each"]]
        mean, low, high = interval(values)
        few[key] = {"values": 3, "mean": mean, "stdev": statistics.stdev(values), "min": min(values), "max": max(values),
                    "low_95": low, "high_95": high}


def believed(tmp):
    """An audit believes the summary as far as its runs give it."""
    out = tmp / "believed"
    stoker("run", "--repeat", "5", "--check", *tiny("/believed", out, metric__au=0.01, **MEMORY), status=None)
    path = out / "repeat.json"
    assert not audited(path)[0], audited(path)
    edited_anywhere(path, {"warm_by_request", "check", "samples_per_s"}, every=3)
    runs_gone(path, "2")
    whole = load(out, "repeat.json")
    # two of five runs are gone, and the summary says that there were three
    for k in (2, 4):
        shutil.move(out / str(k), tmp / f"away{k}")
    assert {"identity"} <= failed(path), audited(path)
    few = json.loads(json.dumps(whole))
    few["each"] = [r for r in few["each"] if r["folder"] in "135"]
    few["runs"] = 3
    seal(path, few)
    assert "figures" in failed(path), audited(path)
    told("audit", "two of five repetitions removed, and repeat.json says three", audited(path)[0][0]["text"])
    # with the statistics of three: five were asked for
    values_of(few)
    seal(path, few)
    assert [f for f in audited(path)[0] if f["check"] == "complete" and "3 of 5" in f["text"]], audited(path)
    # and as if three had been asked for: the folders have the numbers of five
    few["runs_asked"] = 3
    for new, old in ((2, 3), (3, 5)):
        shutil.move(out / str(old), out / str(new))
        few["each"][new - 1]["folder"] = str(new)
    seal(path, few)
    found = audited(path)[0]
    assert [f for f in found if f["check"] == "figures" and "the number of run 2" in f["text"]], found
    for new, old in ((3, 5), (2, 3)):
        shutil.move(out / str(new), out / str(old))
    # another run in the folder of one, and a run that is counted twice
    for k in (2, 4):
        shutil.move(tmp / f"away{k}", out / str(k))
    # the last two are not in it, but there
    few["each"] = whole["each"][:3]
    values_of(few)
    seal(path, few)
    assert [f for f in audited(path)[0] if f["check"] == "identity" and "'4'" in f["text"]], audited(path)
    seal(path, whole)
    shutil.move(out / "2", tmp / "away2")
    shutil.copytree(out / "3", out / "2")
    assert "identity" in failed(path)
    shutil.rmtree(out / "2")
    shutil.move(tmp / "away2", out / "2")
    path.write_text("{}")
    assert "complete" in stoker("audit", "--json", out, status=None).stdout
    path.write_text("{")
    stoker("audit", out, status=1)


def prepared_once(tmp):
    """The dataset is generated once, checkpoints are written to an empty folder each time."""
    data, out, checkpoints = tmp / "once", tmp / "once-out", tmp / "checkpoints"
    (checkpoints / "1").mkdir(parents=True)
    (checkpoints / "1/mine").write_text("kept")
    keys = dict(STEADY, files=8, workflow__checkpoint="true", checkpoint__checkpoint_folder=checkpoints, dataset__keep_files="false",
                model__model_size_bytes=10000, checkpoint__checkpoint_after_epoch=1, checkpoint__epochs_between_checkpoints=1)
    done = stoker("run", "--repeat", "3", *tiny(data, out, **keys))
    assert done.stdout.startswith("8 files written, 0 already existed"), done.stdout
    assert all((r["checkpoint"].get("saves") or r["checkpoint"].get("save")) for r in (load(out / str(k)) for k in (1, 2, 3)))
    assert sorted(os.listdir(checkpoints)) == ["1", "3"] and (checkpoints / "1/mine").exists()
    assert not list(data.rglob("*.npy")), "the last run removes the dataset, as dataset.keep_files=false asks"
    for k in (1, 2, 3):
        assert "workflow.generate_data=false" in (out / str(k) / ".hydra/overrides.yaml").read_text()


def interrupted(tmp):
    out = tmp / "interrupted"
    argv = tiny("/interrupted", out, **dict(MEMORY, train__epochs=3))
    run = subprocess.Popen([STOKER, "run", "--repeat", "50", *map(str, argv)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True)
    end = time.monotonic() + 30
    while not (out / "3").exists() and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    said, why = run.communicate(timeout=30)
    together = load(out, "repeat.json")
    assert run.returncode == 1 and "stopped" in why, (run.returncode, why)
    assert 2 <= together["runs"] < 50 and together["runs_asked"] == 50, together
    assert f"{together['runs']} of 50 runs" in said and len(together["each"]) == together["runs"], said
    # the run that was interrupted is no repetition of the others
    assert len(list(out.glob("*/result.json"))) == together["runs"] + 1
    assert json.loads(stoker("compare", "--json", out, out / "1").stdout)["runs"] == [together["runs"], 1]


def together(tmp):
    """Two processes make each run together."""
    program = next((p for p in ("mpirun.openmpi", "mpirun.mpich") if shutil.which(p)), None)
    if not program or SANITIZED:
        left_out("repetitions of two processes: " + ("an MPI library is not built with the sanitizer" if SANITIZED else "no mpirun"))
        return
    out, more = tmp / "two", ["--oversubscribe"] if "openmpi" in program else []
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    argv = tiny("/two", out, metric__au=0.01, **dict(MEMORY, files=40))
    done = subprocess.run([program, "-n", "2", *more, STOKER, "run", "--repeat", "3", "--min-samples-per-s", "1", *map(str, argv)], env=env,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    assert done.stdout.count("3 of 3 runs, 2 accelerators") == 1, done.stdout
    assert all((out / str(k) / "1_output.json").exists() for k in (1, 2, 3))
    mean, low, _ = interval([r["whole_run_au_percent"] for r in of_runs(out, 3)])
    assert math.isclose(load(out, "repeat.json")["whole_au_percent"]["low_95"], low, rel_tol=1e-5)


def usage(tmp):
    argv = tiny("/usage", tmp / "usage", **MEMORY)
    assert "'0' is not a whole number from 1 to" in stoker("run", "--repeat", "0", *argv, status=2).stderr
    assert "cannot be combined" in stoker("run", "--repeat", "2", "--truth-table", *argv, status=2).stderr
    e = stoker("run", "--repeat", "2", *argv, "workflow.train=false", status=2).stderr
    assert "nothing to repeat" in e, e
    # one stream of progress for all runs
    stream = tmp / "progress.json"
    stoker("run", "--repeat", "3", "--progress-file", stream, *argv)
    ends = [json.loads(s)["status"] for s in stream.read_text().splitlines() if '"end"' in s]
    assert ends == ["complete"] * 3, ends


with tempfile.TemporaryDirectory() as folder:
    for case in (trap, rates, page_cache, summary, believed, prepared_once, interrupted, together, usage):
        case(pathlib.Path(folder))
