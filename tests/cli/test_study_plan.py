"""What a study says before it begins, and what it makes of a design: the page cache, problems of every row, scaled and
shrunk designs, folders of the user's own, batch scripts."""
# tier: long
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import result_facts  # noqa: E402
import small_study  # noqa: E402
from small_study import study  # noqa: E402
from util import left_out, stoker  # noqa: E402

WORKLOAD = small_study.workload(0.002)


def prepare(tmp, *rows, workload=WORKLOAD, columns="model,processes,overrides,run"):
    shutil.rmtree(tmp, ignore_errors=True)
    small_study.prepare(tmp, "\n".join([columns, *rows]) + "\n", workload)


def dry(tmp, *args, **kw):
    before = {p: p.stat().st_mtime_ns for p in tmp.rglob("*")}
    text = study(tmp, "run", "--dry-run", "-v", *args, **kw).stdout
    assert {p: p.stat().st_mtime_ns for p in tmp.rglob("*")} == before, "a dry run wrote something"
    return text


def result(tmp, run, results="results"):
    return json.loads((tmp / results / run / "run-1/result.json").read_text())


def value(r, key):
    return r["configuration"][key]["value"]


def refused(tmp, *args, says=()):
    """The command is refused before anything is touched."""
    before = {p: p.read_bytes() for p in tmp.rglob("*") if p.is_file()}
    done = study(tmp, "run", *args, status=2)
    assert {p: p.read_bytes() for p in tmp.rglob("*") if p.is_file()} == before, args
    for word in says:
        assert word in done.stderr, (args, word, done.stderr)


def on_disk(folder):
    kind = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True).stdout.strip()
    return kind not in ("tmpfs", "ramfs")


def cold(tmp):
    """Epochs do not measure memory, unless that is asked for; and the study says why."""
    prepare(tmp, "small,1,,N", "small,1,++workload.storage.page_cache=keep,N", "small,1,++workload.storage.page_cache=cold,N",
            "small,1,++workload.compat.dlio=True,N", "small,1,++workload.storage.store=direct,N",
            "small,1,++workload.storage.store=memory,N", "small,1,++workload.dataset.format=synthetic,N",
            "small,1,++workload.workflow.train=False ++workload.workflow.evaluation=True ++workload.workflow.generate_data=True "
            "++workload.dataset.num_files_eval=24,N")
    if not on_disk(tmp):
        text = dry(tmp)
        assert "the page cache is left alone: '" in text and "cannot be evicted" in text, text
        left_out("the page cache of a study: the temporary folder is in memory")
        return
    text = dry(tmp)
    for words in ("lines 2, 5, 9: storage.page_cache is cold_epochs (the default of a study)",
                  "line 3: storage.page_cache is keep (the design)", "line 4: storage.page_cache is cold (the design)",
                  "line 6: the page cache is left alone: storage.store 'direct' does not use it",
                  "line 7: the page cache is left alone: no file is read with storage.store 'memory'"):
        assert words in text, (words, text)
    study(tmp, "run")
    for run, want in (("1", "cold_epochs"), ("1_page_cache_keep", "keep"), ("1_page_cache_cold", "cold"),
                      ("1_dlio_True", "cold_epochs"), ("1_store_direct", "keep"), ("1_store_memory", "keep"), ("1_format_synthetic", "keep"),
                      ("1_train_False_evaluation_True_generate_data_True_num_files_eval_24", "cold_epochs")):
        assert value(result(tmp, "small/" + run), "storage.page_cache") == want, run
    for run, first, second in (("1", True, True), ("1_page_cache_cold", True, False)):
        caches = [e["page_cache"] for e in result(tmp, "small/" + run)["training"]["epochs"]]
        assert [c["cached_at_start_bytes"] < 0.1 * c["bytes_looked_at"] for c in caches] == [first, second], (run, caches)
    assert "storage.page_cache is keep (--warm)" in dry_again(tmp, "--warm")
    refused(tmp, "storage.page_cache=cold", says=("line 7 of the design could run, but not", "set it to keep"))
    (tmp / "d.csv").write_text("model,processes\nsmall,1\n")
    assert "cold (the command line)" in dry_again(tmp, "storage.page_cache=cold")
    (tmp / "config/workload/small.yaml").write_text(WORKLOAD + "storage: {page_cache: drop_behind}\n")
    assert "drop_behind (the workload)" in dry_again(tmp)


def dry_again(tmp, *args):
    (tmp / "d.csv").write_text((tmp / "d.csv").read_text().replace(",Y\n", ",N\n"))
    return dry(tmp, *args)


def problems(tmp):
    """All of a design's at once, with what steady needs."""
    prepare(tmp, "unet3d_h100,8,,N", "unet3d_h100,8,++workload.reader.prefetch_size=2,N",
            "unet3d_h100,4,++workload.reader.read_threads=8,N",
            "unet3d_h100,1,++workload.dataset.num_files_train=100000000 ++workload.dataset.record_length_bytes_stdev=0,N",
            "small,1,++workload.reader.bach_size=3,N", "small,1,++workload.reader.batch_size=64,N",
            "small,2,++workload.workflow.evaluation=True,N",
            "small,2,++workload.workflow.checkpoint=True ++workload.checkpoint.checkpoint_after_epoch=7,N",
            "small,4,++workload.dataset.num_files_train=1 ++workload.dataset.num_samples_per_file=400,N",
            "small,1,++workload.dataset.format=hdf5_opt,N", "nothing,1,,N",
            "small,3000,++workload.dataset.num_files_train=10000 ++workload.dataset.record_length_bytes=1e9,N",
            "small,1,++workload.workflow.evaluation=True ++workload.dataset.num_files_eval=4,N",
            "small,1,++workload.output.metric.exclude_start_steps=20,N")
    text = dry(tmp)
    fails, doubts = text.split("Will fail:\n")[1].split("Will not measure what it should:\n")
    for words in ("line 5: 13 PiB needed, ", "free in '", "line 7: ", "do not make one step of reader.batch_size 64",
                  "line 11: ", "dataset.format hdf5_opt", "line 12: ", "there is no workload 'nothing'", "line 6: ", "bach_size", "batch_size",
                  "line 13: the run needs up to "):
        assert words in fails, (words, fails)
    for words in ("lines 2, 3: 8 processes: 3 steps an epoch, steady needs ", "line 4: 4 processes: 6 steps an epoch, steady needs 81",
                  "line 8: ", "nothing is evaluated", "line 9: workflow.checkpoint is on, but no checkpoint is due in 2 epochs (",
                  "line 10: 1 training file for 4 processes", "line 14: 1 process: 4 steps in each evaluation, the verdict evaluation needs 21",
                  "line 15: 1 process: 16 steps an epoch, steady needs 40", "metric.au is not set: the target is the default, 90 %",
                  "memory: at most ", "disk: at most ", "--small shrinks the design"):
        assert words in text, (words, text)
    told = stoker("study", "run", "config/../d.csv", "--dry-run", "-v", cwd=tmp)
    assert "add --config-dir" not in told.stdout, told.stdout
    (tmp / "nothing.yaml").write_text(WORKLOAD)
    told = stoker("study", "run", tmp / "d.csv", "--dry-run", "-v", cwd=tmp)
    assert f"it is '{tmp}/nothing.yaml': add --config-dir {tmp}" in told.stdout, told.stdout
    study(tmp, "run", "--dry-run", "--launcher", "mpirun", status=0)
    text = dry(tmp, "--launcher", "srun", env={**os.environ, "PATH": "/nowhere"})
    assert "--launcher srun: there is no program 'srun' in PATH" in text.split("Will fail:\n")[1], text
    before = (tmp / "d.csv").read_bytes()
    done = study(tmp, "run", "--launcher", "srun", env={**os.environ, "PATH": "/nowhere"}, status=2)
    assert "there is no program 'srun'" in done.stderr and (tmp / "d.csv").read_bytes() == before
    # a design that is long enough has nothing to say
    prepare(tmp, "small,1,++workload.metric.au=0.5,N")
    assert "line 2: 1 process: 20 steps an epoch, steady needs 21" in dry(tmp, "dataset.num_files_train=41")
    text = dry(tmp, "dataset.num_files_train=42")
    for head in ("Will fail", "Will not measure", "Warnings", "--small"):
        assert head not in text, text
    assert "\nNo problem found.\n\ncommands:\n" in text, text
    # a column that only looks like a factor, said before the runs, too; then where the page comes from
    prepare(tmp, "small,1,,N,4,x", columns="model,processes,overrides,run,num_workers,note")
    said = "line 1: the column 'num_workers' has no effect: write num_workers=VALUE in the column 'overrides'"
    text = dry(tmp, "dataset.num_files_train=42")
    assert said in text.split("Will not measure what it should:\n")[1] and "'note'" not in text and "No problem" not in text, text
    done = study(tmp, "run", "dataset.num_files_train=42")
    assert said in done.stderr, done.stderr
    page = re.search(r"stoker (report results .*)", done.stdout)[1].split()
    assert page[-2:] == ["--plots", "plots"], done.stdout
    stoker(*page[:-2], cwd=tmp)
    assert (tmp / "study.html").exists()
    # what is written instead is read
    prepare(tmp, "small,1,num_workers=3,N")
    study(tmp, "run", "-q")
    ran = next((tmp / "results/small").iterdir()).name
    assert value(result(tmp, f"small/{ran}"), "reader.read_threads") == 3


def one_function(tmp):
    """The steps that a plan asks for are those that the verdict asks for: prefetched batches hide slow reads, so that
    the verdict fails and says how many it needs."""
    slow = ("++workload.storage.store=throttle+memory ++workload.storage.throttle.latency=0.02 "
            "++workload.dataset.num_files_train=7 ++workload.reader.batch_size=1 ++workload.train.computation_time=0.01 ")
    prepare(tmp, *(f"small,1,{slow}{more},N" for more in (
        "++workload.reader.prefetch_size=4 ++workload.reader.read_threads=2",
        "++workload.reader.read_threads=4 ++workload.output.metric.exclude_start_steps=2",
        "++workload.compat.dlio=True ++workload.reader.read_threads=3 ++workload.reader.prefetch_size=2")))
    said = dict(re.findall(r"line (\d+): 1 process: 7 steps an epoch, steady needs (\d+)", dry(tmp)))
    assert set(said) == {"2", "3", "4"}, said
    study(tmp, "run")
    state = json.loads((tmp / "results/d.csv.study.json").read_text())["runs"]
    for run in state:
        r = json.loads(pathlib.Path(run["folder"], "result.json").read_text())
        needs = result_facts.find(result_facts.verdict_facts(r, "steady"), "steady.needed")
        assert needs and f"{needs['steps']:.0f}" == said[str(run["line"])], (run["line"], said, needs)


def small(tmp):
    """Every row has its steps, the design and its states stay, and the results say what they are."""
    workload = WORKLOAD.replace("record_length_bytes: 4096", "record_length_bytes: 30000000, record_length_bytes_stdev: 1000000, "
                                "num_files_eval: 4").replace("computation_time: 0.002", "computation_time: 2.0").replace(
        "epochs: 2", "epochs: 9").replace("train: True", "train: True, checkpoint: True, evaluation: True")
    workload += ("checkpoint: {checkpoint_after_epoch: 9}\nmodel: {name: small, model_size_bytes: 40000000000}\n"
                 "evaluation: {eval_time: 1.0, eval_after_epoch: 5}\n").replace("model: {name: small, ", "model: {")
    workload = workload.replace("model: {name: small}\n", "", 1)
    prepare(tmp, "small,1,,N", "small,2,++workload.reader.read_threads=2,Y", "small,2,++workload.reader.batch_size=4,F",
            "small,1,++workload.dataset.num_files_train=16,N", workload=workload.replace("train: 32", "train: 8"))
    text = dry(tmp, "--small")
    assert "alone asks for it" not in text, text
    prepare(tmp, "small,1,,N", "small,1,++workload.dataset.record_length_bytes=3000000000,N", workload=workload)
    assert "line 3 of the design alone asks for it" in dry(tmp, "--small")
    prepare(tmp, "small,1,,N", "small,2,++workload.reader.read_threads=2,Y", "small,2,++workload.reader.batch_size=4,F",
            "small,1,++workload.dataset.num_files_train=16,N", workload=workload.replace("train: 32", "train: 8"))
    design = (tmp / "d.csv").read_bytes()
    text = dry(tmp, "--small")
    assert "4 runs" in text and "Shrunk (full size in brackets)" in text, text
    assert "\\n" not in text, text
    for words in ("Will fail", "an epoch, steady needs", "verdict evaluation needs"):
        assert words not in text, text
    disk = re.search(r"disk: at most ([0-9.]+) (\w+)", text)
    assert float(disk[1]) * {"GiB": 2**30, "MiB": 2**20}[disk[2]] <= 5e9, text
    compute = [float(s) for s in re.findall(r"at least ([0-9.]+) s\n", text)]
    assert compute and max(compute) <= 20.1, text
    # small enough for a test
    args = ["--small", "--scale", "dataset.record_length_bytes=0.002", "--scale", "train.computation_time=0.001",
            "--scale", "evaluation.eval_time=0.001", "model.model_size_bytes=100000"]
    done = study(tmp, "run", *args, "-q")
    assert "results in 'results-small'" in done.stdout and (tmp / "d.csv").read_bytes() == design
    files = {}
    for run in ("1", "2_read_threads_2", "2_batch_size_4", "1_num_files_train_16"):
        r = result(tmp, "small/" + run, "results-small")
        e = r["training"]["epochs"]
        assert len(e) == 2 and value(r, "run.note") == "shrunk by --small", run
        assert r["ranks"][0]["prefetch_batches"] * 10 <= e[0]["measured_steps"], (run, e[0])
        assert not any(n.startswith("steady.queue") for n in result_facts.reasons(result_facts.verdict_facts(r, "steady")))
        assert r["evaluation"] and r["checkpoint"]["save"]["each"], run
        assert json.loads((tmp / "results-small/small" / run / "run-1/study_run.json").read_text())["shrunk"] is True
        files[run] = value(r, "dataset.num_files_train")
    # what the design varies is still what differs
    assert files["1"] == files["2_batch_size_4"] and abs(files["1_num_files_train_16"] / files["1"] - 2) < 0.01, files
    stoker("study", "report", "d.csv", "--small", "-o", "r.html", cwd=tmp)
    assert '"note":"shrunk by --small"' in (tmp / "r.html").read_text()
    assert "(shrunk by --small)" in stoker("run", "small", "--small", "-q", "-o", "one", "--config-dir", "config",
                                           "dataset.data_folder=two", "train.computation_time=0.001", "train.epochs=1",
                                           "dataset.record_length_bytes=1000", "dataset.record_length_bytes_stdev=0",
                                           "workflow.checkpoint=false", "evaluation.eval_time=0.001", cwd=tmp).stdout
    assert "nothing to run" in study(tmp, "run", "--dry-run", *args).stdout
    assert "4 done" in study(tmp, "status", *args).stdout
    shutil.rmtree(tmp / "results-small/small/1")  # what is not there is run again
    done = study(tmp, "run", *args)
    assert done.stderr.count(": done in") == 1, done.stderr
    # the study in full has not begun
    assert "2 pending" in study(tmp, "status").stdout and not (tmp / "results").exists()
    # a row that fails is known, and tried again when that is wanted
    prepare(tmp, "small,1,,N", "small,1,storage.store=fault+posix storage.fault.op=read storage.fault.nth=1,N")
    design = (tmp / "d.csv").read_bytes()
    study(tmp, "run", "--small", "-q", status=1)
    assert (tmp / "d.csv").read_bytes() == design and "1 failed" in study(tmp, "status", "--small").stdout
    assert "nothing to run" in study(tmp, "run", "--small", "--dry-run").stdout
    assert "1 run\n" in study(tmp, "run", "--small", "--dry-run", "--retry").stdout
    # also evaluations for which full size has too few files
    prepare(tmp, *(f"default,{n},,N" for n in (1, 16, 64)))
    assert "the verdict evaluation needs" in dry(tmp) and "the verdict evaluation needs" not in dry(tmp, "--small")
    # models of every kind fit
    rows = [f"{m},{n},,N" for m in ("unet3d_h100", "resnet50_h100", "bert_v100", "cosmoflow_h100", "dlrm_custom", "default_custom",
                                    "megatron_deepspeed_LLNL_custom", "llama3_8b") for n in (1, 8)]
    prepare(tmp, *rows)
    text = dry(tmp, "--small")
    assert "Will fail" not in text and "epoch, steady needs" not in text and "16 runs" in text, text


def scaled(tmp):
    workload = WORKLOAD.replace("computation_time: 0.002", "computation_time: {mean: 0.02, stdev: 0.01}").replace(
        "read_threads: 1", "read_threads: 1, preprocess_time: 0.1, preprocess_time_stdev: 0.05") + (
        "storage: {store: throttle+posix, throttle: {latency: 0.5}}\nevaluation: {eval_time: {type: gamma, shape: 3, scale: 0.2}}\n")
    prepare(tmp, "small,1,,N", "small,1,++workload.train.computation_time=0.04,N", workload=workload)
    study(tmp, "run", *(x for s in ("train.computation_time=0.1", "reader.preprocess_time=0.01", "evaluation.eval_time=0.5",
                                    "++workload.dataset.num_files_train=0.5", "storage.throttle.latency=0.002",
                                    "train.total_training_steps=0.5", "small:dataset.record_length=3") for x in ("--scale", s)))
    r = result(tmp, "small/1")
    for key, want in (("train.computation_time", "{mean: 0.002, stdev: 0.001}"), ("reader.preprocess_time_stdev", 0.0005),
                      ("evaluation.eval_time", "{type: gamma, shape: 3, scale: 0.1}"), ("dataset.num_files_train", 16),
                      ("dataset.record_length_bytes", 12288), ("train.total_training_steps", -1)):
        got = value(r, key)
        assert got == want, (key, got)
    assert value(result(tmp, "small/1_computation_time_0.04"), "train.computation_time") == "0.004"
    command = json.loads((tmp / "results/small/1/run-1/study_run.json").read_text())["command"]
    assert "++workload.storage.throttle.latency=0.001" in command, command
    for scale, words in (("train.computation_tim=0.1", "did you mean train.computation_time?"),
                         ("train.computation_time=0", "is not a number above 0"), ("train.computation_time=-1", "above 0"),
                         ("train.computation_time=x", "above 0"), ("train.computation_time=nan", "above 0"),
                         ("train.computation_time=inf", "above 0"),
                         ("train.computation_time", "is not a key and a factor"), ("=0.1", "is not a key and a factor"),
                         ("dataset.format=0.5", "dataset.format is not a number"),
                         ("small:reader.file_shuffle=2", "is not a number")):
        refused(tmp, "--retry", "--scale", scale, says=("--scale: '", words))
    prepare(tmp, "small,1,,N", "small,4,,N", "small,1,++workload.metric.au=0.2,N")
    refused(tmp, "--scale", "metric.au=2", says=("line 2 of the design could run, but not with the options of the command line", "metric.au"))
    # an option that makes one row impossible
    refused(tmp, "reader.batch_size=16", says=("line 3 of the design could run, but not", "reader.batch_size 16"))
    refused(tmp, "smal:reader.batch_size=1", says=("no row of the design has that model", "smal:reader.batch_size=1"))
    refused(tmp, "--scale", "smal:train.computation_time=2", says=("no row of the design has that model",))
    refused(tmp, "--config-dir", "d.csv", says=("--config-dir", "'d.csv' is not a folder"))
    refused(tmp, "--config-dir", "conf", says=("--config-dir", "'conf' does not exist"))
    refused(tmp, "reader.bach_size=16", says=("line 2 of the design could run, but not", "reader.batch_size"))


def folders(tmp):
    prepare(tmp, "small,1,,N", "small,2,,N")
    data = tmp / "own"
    text = dry(tmp, f"dataset.data_folder={data}")
    assert "the dataset in dataset.data_folder" in text and "is generated there and kept" in text and "is not used" not in text, text
    study(tmp, "run", f"dataset.data_folder={data}")
    assert value(result(tmp, "small/2"), "dataset.data_folder") == str(data)
    names = sorted((data / "train").iterdir())
    assert len(names) == 32 and not (tmp / "scratch").exists() and len(list((tmp / "results").glob("*.generate.log"))) == 1
    # what a file system or a person keeps there is no dataset
    for k, name in enumerate(("lost+found/", ".snapshot/hourly/", "README", ".stoker_generate.lock", "train/")):
        prepare(tmp, "small,1,,N")
        other = tmp / f"own{k}"
        (other / name).mkdir(parents=True) if name[-1] == "/" else (other.mkdir(), (other / name).touch())
        study(tmp, "run", f"dataset.data_folder={other}")
        assert any((other / "train").iterdir()), name
        shutil.rmtree(tmp / "results")
    prepare(tmp, "small,1,,N", "small,2,,N")
    study(tmp, "run", f"dataset.data_folder={data}")
    # it is there, and read as it is
    times = {p: p.stat().st_mtime_ns for p in names}
    for manifest in (True, False):  # DLIO's have none
        shutil.rmtree(tmp / "results")
        if not manifest:
            (data / "stoker_manifest.json").unlink()
        text = dry_again(tmp, f"dataset.data_folder={data}")
        assert f"the dataset in dataset.data_folder '{data}' is read" in text, text
        study(tmp, "run", f"dataset.data_folder={data}")
        assert {p: p.stat().st_mtime_ns for p in names} == times and not list((tmp / "results").glob("*.generate.log"))
    # a row needs another one: said, and nothing of it is replaced
    prepare(tmp, "small,1,,N", f"small,1,++workload.dataset.data_folder={data},N",
            f"small,1,++workload.dataset.data_folder={data} ++workload.dataset.record_length_bytes=8192,N")
    stoker("generate", "small", "--config-dir", "config", f"dataset.data_folder={data}", cwd=tmp)
    times = {p: p.stat().st_mtime_ns for p in sorted((data / "train").iterdir())}
    assert "can hold one dataset, but lines 3 and 4 need different ones" in dry(tmp)
    study(tmp, "run", status=1)
    assert [x[-1] for x in (tmp / "d.csv").read_text().splitlines()[1:]] == ["Y", "Y", "F"]
    assert {p: p.stat().st_mtime_ns for p in times} == times
    (tmp / "d.csv").write_text(f"model,processes,overrides\nsmall,1,++workload.dataset.data_folder={data} ++workload.dataset.seed=3\n")
    text = dry(tmp)
    assert f"the dataset in '{data}' is not the one that this row needs" in text.split("Will fail:\n")[1], text
    # of the command line it is the command's error
    prepare(tmp, "small,1,,N", "small,1,++workload.dataset.format=npy,N")
    refused(tmp, "dataset.data_folder=here", says=("lines 2 and 3 need different ones", "--scratch"))
    # of the workload it is not used, and that is said
    assert f"generates its datasets in '{tmp}/scratch'" in dry(tmp)
    if pathlib.Path("/dev/shm").is_dir() and on_disk(tmp):
        text = dry(tmp, "--scratch", "/dev/shm/stoker-study-none").split("Will not measure what it should:\n")[1]
        assert "is not used: this study measures the file system of '/dev/shm/stoker-study-none'" in text, text
    # a row that removes its dataset shares it all the same; checkpoints stay where the user wants them
    prepare(tmp, "small,1,,N", "small,2,,N")
    study(tmp, "run", "dataset.keep_files=false", "workflow.checkpoint=true", "checkpoint.checkpoint_folder=mine")
    assert list((tmp / "mine").rglob("*")) and not (tmp / "scratch").exists()


def script(tmp):
    prepare(tmp, "small,4,,N")
    text = study(tmp, "sbatch", "--exclusive", "--gres", "gpu:a100:4(S:0-1)", "--sbatch=--constraint=nvme&ib", "--sbatch",
                 "--comment='two words'", "--small", "--partition", "gpu").stdout
    for line in ("#SBATCH --exclusive", "#SBATCH --gres=gpu:a100:4(S:0-1)", "#SBATCH --constraint=nvme&ib",
                 "#SBATCH --comment='two words'", "#SBATCH --ntasks=4"):
        assert line in text.splitlines(), text
    assert " --small" in text and text.index("#SBATCH --comment") < text.index("set -u"), text
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    plain = study(tmp, "sbatch").stdout
    assert "exclusive" not in plain and "gres" not in plain
    for args in (("--gres", "a b"), ("--sbatch", "x"), ("--sbatch=--a\nrm -rf x",), ("--sbatch", "-")):
        study(tmp, "sbatch", *args, status=2)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp, "here")
        for case in (cold, problems, one_function, small, scaled, folders, script):
            case(tmp)


if __name__ == "__main__":
    main()
