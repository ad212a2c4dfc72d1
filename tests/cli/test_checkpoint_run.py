"""Checkpoints of runs: when they are written and under which names, whatever the number of ranks; alone; in the
background; and what is left when a write fails or the program is killed."""
# tier: long
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from checkpoint_times import check_by_time, steps_of  # noqa: E402
from util import STOKER, left_out, load, stoker, tiny  # noqa: E402

MODEL = {"model__type": "transformer", "model__num_layers": 3, "model__transformer__hidden_size": 64,
         "model__transformer__ffn_hidden_size": 128, "model__transformer__vocab_size": 500,
         "model__transformer__num_attention_heads": 8, "model__transformer__num_kv_heads": 4,
         "model__parallelism__zero_stage": 1}


def files(folder):
    """Relative path of each file, and its size."""
    folder = pathlib.Path(folder)
    return {str(p.relative_to(folder)): p.stat().st_size for p in folder.rglob("*") if p.is_file()}


def train(tmp, name, ranks=2, status=0, **keys):
    """Two epochs of six steps a rank; the folder of checkpoints and the result's."""
    out, saved = tmp / f"{name}-out", tmp / f"{name}-saved"
    keys = {"files": 12 * ranks, "train__epochs": 2, **MODEL, **keys}
    done = stoker("run", "-n", ranks, *tiny(tmp / f"data{ranks}-{keys['files']}", out, workflow__checkpoint="true",
                                            checkpoint__checkpoint_folder=saved, **keys), status=status)
    return out, saved, done


def training(tmp):
    out, saved, _ = train(tmp, "epochs")
    assert steps_of(saved) == ["global_epoch1_step6", "global_epoch2_step6"], steps_of(saved)
    out, saved, _ = train(tmp, "late", checkpoint__checkpoint_after_epoch=2)
    assert steps_of(saved) == ["global_epoch2_step6"], steps_of(saved)
    out, saved, _ = train(tmp, "dlio", compat__dlio="true")
    assert steps_of(saved) == ["global_epoch1_step7", "global_epoch2_step7"], steps_of(saved)
    out, saved, _ = train(tmp, "steps", checkpoint__steps_between_checkpoints=4, checkpoint__rank_sync="true",
                          checkpoint__fsync="true")
    assert steps_of(saved) == ["global_epoch1_step4", "global_epoch2_step4"], steps_of(saved)
    for rank in (0, 1):
        epoch = load(out, f"{rank}_per_epoch_stats.json")["2"]
        assert epoch.pop("program").startswith("stoker "), epoch
        assert list(epoch) == ["start", "block1", "save_ckpt1", "block2", "end", "duration"], list(epoch)
        save = epoch["save_ckpt1"]
        assert list(save) == ["start", "end", "duration", "throughput"], save
        size = load(out, "summary.json")["metric"]["checkpoint_size_GB"]
        assert abs(save["throughput"] - size / save["duration"]) < 1e-9 * save["throughput"]
        steps = load(out, f"{rank}_output.json")["2"]["load"]
        assert {k: len(v) for k, v in steps.items()} == {"block1": 4, "block2": 2}, steps
    result = load(out)
    for verdict in result["verdicts"]:
        assert verdict["check"] != "order" or verdict["level"] == "pass", verdict
    each = result["checkpoint"]["save"]["each"]
    assert [(c["epoch"], c["number"], c["whole"]) for c in each] == [(1, 1, True), (2, 1, True)], each
    assert sum(c["file_bytes"] for c in each) == sum(files(saved).values()), each
    assert sum(c["tensor_bytes"] for c in each) == 2 * result["checkpoint"]["total_bytes"], each
    io = result["checkpoint"]["save"]["io"]
    assert io["sync"]["latency"]["count"] >= len(files(saved)), io["sync"]
    assert io["write"]["returned_bytes"] == sum(files(saved).values()), io["write"]
    # a checkpoint that ends the epoch opens no block
    out, saved, _ = train(tmp, "last", checkpoint__steps_between_checkpoints=2, checkpoint__keep_last=2)
    assert steps_of(saved) == ["global_epoch2_step4", "global_epoch2_step6"], steps_of(saved)
    epoch = load(out, "0_per_epoch_stats.json")["1"]
    assert [k for k in epoch if k[0] in "bs"][1:] == [f"{what}{n}" for n in (1, 2, 3) for what in ("block", "save_ckpt")]


def only(tmp, name, ranks, *more, status=0, quiet=("-q",), **keys):
    out, saved = tmp / f"{name}-out", tmp / f"{name}-saved"
    keys = {**MODEL, "workflow__train": "false", "workflow__checkpoint": "true", "checkpoint__num_checkpoints_write": 3,
            "checkpoint__num_checkpoints_read": 2, "checkpoint__checkpoint_folder": saved, **keys}
    done = stoker("run", "default", *quiet, "-n", ranks, "-o", out, *more,
                  *[f"{k.replace('__', '.')}={v}" for k, v in keys.items()], status=status)
    return out, saved, done


def partial(tmp):
    """Ranks that are no multiple of tensor x pipeline write, and read back, their part of the model."""
    keys = {"model__num_layers": 4, "model__parallelism__tensor": 2, "model__parallelism__pipeline": 4}
    saved = {ranks: only(tmp, f"part{ranks}", ranks, checkpoint__verify="true", quiet=(), **keys) for ranks in (2, 8)}
    part, whole = files(saved[2][1]), files(saved[8][1])
    assert 0 < len(part) < len(whole) and part.items() <= whole.items(), (part, whole)
    assert "partial model: 2 ranks are not a multiple" in saved[2][2].stderr, saved[2][2].stderr
    assert "partial" not in saved[8][2].stderr
    for ranks, (out, _, _) in saved.items():
        result = load(out)
        [verdict] = [v for v in result["verdicts"] if v["check"] == "checkpoint"]
        assert ("Partial model: 2 of the 8 ranks" in verdict["text"]) == (ranks == 2), verdict
        sizes = result["checkpoint"]
        assert sizes["whole_job_ranks"] == 8
        assert sizes["whole_job_bytes"] == load(saved[8][0])["checkpoint"]["total_bytes"] >= sizes["total_bytes"]
        assert sizes["load"]["count"] == 2, sizes


def alone(tmp):
    same = [files(only(tmp, f"copies{ranks}", ranks, model__parallelism__zero_stage=0)[1]) for ranks in (1, 2, 4)]
    assert same[0] == same[1] == same[2] and len(same[0]) == 6, same
    for ranks in (1, 2, 4):
        out, saved, _ = only(tmp, f"only{ranks}", ranks, checkpoint__verify="true")
        assert steps_of(saved) == [f"global_epoch1_step{i}" for i in (1, 2, 3)]
        result, metric = load(out)["checkpoint"], load(out, "summary.json")["metric"]
        assert result["save"]["count"] == 3 and result["load"]["count"] == 2, result
        assert list(metric) == [f"{w}_checkpoint_{k}" for w in ("save", "load") for k in (
            "io_mean_GB_per_second", "io_stdev_GB_per_second", "duration_mean_seconds",
            "duration_stdev_seconds")] + ["checkpoint_size_GB"], list(metric)
        assert load(out, "summary.json")["epochs"] == 0
        each = result["save"]["each"]
        assert sum(c["file_bytes"] for c in each) == sum(files(saved).values())
        assert all(c["duration_s"] >= c["duration_rank_0_s"] >= c["duration_shortest_rank_s"] > 0 for c in each), each
        mean = sum(c["duration_s"] for c in each) / 3
        assert abs(metric["save_checkpoint_duration_mean_seconds"] - mean) < 1e-9
        # a small tensor comes with the buffer that its record's header is read by
        io = result["load"]["io"]
        assert io["data"]["returned_bytes"] + io["metadata"]["returned_bytes"] >= 2 * result["total_bytes"], io
        assert sum(c["tensor_bytes"] for c in result["load"]["each"]) == 2 * result["total_bytes"]
        for rank in range(ranks):
            epoch = load(out, f"{rank}_per_epoch_stats.json")["1"]
            assert epoch.pop("program").startswith("stoker "), epoch
            assert list(epoch) == ["start", *(f"save_ckpt{i}" for i in (1, 2, 3)), "load_ckpt1", "load_ckpt2",
                                   "end"], list(epoch)
            assert list(load(out, f"{rank}_output.json")["1"]) == ["start", "load", "proc", "throughput", "au",
                                                                   "compute", "end"]
        log = (out / "dlio.log").read_text()
        for line in ("Checkpointing write started", "Checkpointing read started", "Starting loading checkpoint 2",
                     "Checkpoint load duration (seconds)", "Finished saving checkpoint 3 for epoch 1"):
            assert line in log, (line, log)
    # the same once more writes over what is there; damage is found when it is read
    out, saved, _ = only(tmp, "only2", 2, checkpoint__num_checkpoints_write=0, checkpoint__num_checkpoints_read=3)
    assert load(out)["checkpoint"]["load"]["count"] == 3
    victim = next(saved.glob("global_epoch1_step2/*optim*"))
    os.truncate(victim, victim.stat().st_size // 2)
    out, _, done = only(tmp, "only2", 2, status=1, checkpoint__num_checkpoints_write=0,
                        checkpoint__num_checkpoints_read=3)
    assert victim.name in done.stderr and load(out)["status"] == "failed", done.stderr


def workloads(tmp):
    """Every shipped workload of a large model, made small."""
    names = [n for n in re.findall(r"(?m)^\s*(llama\S*)", stoker("show", "workloads").stdout)]
    assert len(names) >= 10, names
    for name in names:
        saved = tmp / name
        stoker("run", name, "-q", "-n", 8, "-o", tmp / "out", f"checkpoint.checkpoint_folder={saved}",
               "model.num_layers=2", "model.transformer.hidden_size=64", "model.transformer.ffn_hidden_size=64",
               "model.transformer.vocab_size=64", "model.parallelism.tensor=2", "model.parallelism.pipeline=1",
               "checkpoint.num_checkpoints_write=2", "checkpoint.num_checkpoints_read=1", "checkpoint.fsync=false",
               "checkpoint.time_between_checkpoints=0", "workflow.train=false", "workflow.generate_data=false")
        assert len(steps_of(saved)) == 2 and files(saved), name


def by_time(tmp):
    """After the first step to end so long after the one before began; 24 steps an epoch, so that lists grow."""
    keys = dict(files=96, train__computation_time=0.01, run__trace="chrome")
    for name, more in (("time", {}), ("time-async", dict(checkpoint__async="true", checkpoint__stage_rate=1e9)),
                       ("time-eval", dict(workflow__evaluation="true", dataset__num_files_eval=8))):
        out, saved, _ = train(tmp, name, checkpoint__seconds_between_checkpoints=0.125, **{**keys, **more})
        assert check_by_time(out, saved, 2, 0.125) >= 1, name
    out, saved, _ = train(tmp, "time-each", checkpoint__seconds_between_checkpoints=1e-6,
                          **{**keys, "train__computation_time": 0.001, "checkpoint__async": "true"})
    assert check_by_time(out, saved, 2, 1e-6) == 48
    # less than the clock can tell is still by time
    out, saved, _ = train(tmp, "time-keep", checkpoint__seconds_between_checkpoints=1e-12, checkpoint__keep_last=2,
                          checkpoint__format="distcp", **{**keys, "train__computation_time": 0.001})
    assert steps_of(saved) == ["global_epoch2_step23", "global_epoch2_step24"], steps_of(saved)
    assert load(out)["checkpoint"]["save"]["count"] == 48
    # a run that ends before the first is due has none, after its epochs neither
    out, saved, _ = train(tmp, "time-none", checkpoint__seconds_between_checkpoints=3600)
    assert not saved.exists() and load(out)["checkpoint"]["save"]["count"] == 0
    # room for the first ones of each epoch is taken at the begin, and stated
    bounds = []
    for seconds in (0, 0, 3600):  # the dataset is there from the second on
        out, _, _ = train(tmp, "time-room", files=4, train__epochs=200, train__computation_time=0, reader__batch_size=2,
                          checkpoint__steps_between_checkpoints=-1, checkpoint__checkpoint_after_epoch=201,
                          checkpoint__seconds_between_checkpoints=seconds)
        bounds.append(load(out)["memory"]["bound_bytes"])
    # a checkpoint and the block after it take some hundred bytes a rank
    assert bounds[2] - bounds[1] > 200 * 16 * 2 * 200, bounds
    _, saved, done = train(tmp, "time-both", status=2, checkpoint__seconds_between_checkpoints=1,
                           checkpoint__steps_between_checkpoints=5)
    assert "both schedule checkpoints" in done.stderr and not saved.exists(), done.stderr
    _, _, done = only(tmp, "time-alone", 1, quiet=(), checkpoint__seconds_between_checkpoints=1)
    assert "seconds_between_checkpoints has no effect" in done.stderr, done.stderr


def background(tmp):
    out, saved, _ = train(tmp, "async", checkpoint__async="true", checkpoint__steps_between_checkpoints=2,
                          checkpoint__keep_last=2, checkpoint__stage_rate=20e6, checkpoint__format="distcp")
    assert steps_of(saved) == ["global_epoch2_step4", "global_epoch2_step6"], steps_of(saved)
    assert all((saved / s / ".metadata").exists() for s in steps_of(saved)), files(saved)
    each = load(out)["checkpoint"]["save"]["each"]
    assert len(each) == 6 and all(c["whole"] for c in each), each
    assert all(c["stage_s"] > 0 and c["stall_max_s"] >= c["stage_s"] and c["write_s"] > 0 for c in each), each
    # a failure in the background ends the run with its sentence; what was there before stays
    out, saved, done = train(tmp, "fail", status=1, checkpoint__async="true", checkpoint__steps_between_checkpoints=2,
                             storage__store="fault+posix", storage__fault__op="write", storage__fault__errno="ENOSPC",
                             storage__fault__path="epoch1_step4", storage__fault__nth=1, storage__fault__count=1000)
    assert "No space left" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert set(f.split("/")[0] for f in files(saved)) == {"global_epoch1_step2"}, files(saved)
    assert not [f for f in files(saved) if f.endswith(".tmp")]
    # told to stop while a slow store is written to
    out, saved = tmp / "stop-out", tmp / "stop-saved"
    run = subprocess.Popen([STOKER, "run", "-n", "2", *tiny(tmp / "data2-24", out, files=24, train__epochs=50, **MODEL,
                            workflow__checkpoint="true", checkpoint__checkpoint_folder=saved, checkpoint__async="true",
                            storage__store="throttle+posix", storage__throttle__write="true",
                            storage__throttle__bandwidth=2e5, workflow__generate_data="false")],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: saved.exists() and any(f.endswith(".tmp") for f in files(saved)), run)
    run.send_signal(signal.SIGINT)
    _, text = run.communicate(timeout=20)
    assert run.returncode == 1 and "stopped" in text, (run.returncode, text)
    assert not [f for f in files(saved) if f.endswith(".tmp")], files(saved)
    assert load(out)["status"] == "interrupted"


def wait_for(what, process, seconds=20):
    end = time.time() + seconds
    while not what():
        assert process.poll() is None and time.time() < end, "it did not come to that"
        time.sleep(0.002)


def whole(path):
    with zipfile.ZipFile(path) as z:
        return z.testzip() is None


def killed(tmp):
    saved = tmp / "kill-saved"
    command = ["default", "-q", "-n", "2", "-o", str(tmp / "kill-out"), "workflow.train=false",
               "workflow.checkpoint=true", f"checkpoint.checkpoint_folder={saved}", "model.model_size_bytes=60000000",
               "checkpoint.num_checkpoints_write=4", "model.parallelism.zero_stage=1"]
    run = subprocess.Popen([STOKER, "run", *command], stderr=subprocess.DEVNULL)
    wait_for(lambda: (saved / "global_epoch1_step3").exists(), run)
    run.kill()
    run.wait()
    names = files(saved)
    done = [f for f in names if not f.endswith(".tmp")]
    assert [f for f in done if f.startswith("global_epoch1_step1/")], names
    for f in done:
        assert whole(saved / f), f
    # the next run ends what was begun
    stoker("run", *command)
    assert len(steps_of(saved)) == 4 and not [f for f in files(saved) if f.endswith(".tmp")], files(saved)


def full(tmp):
    """A file system without space for the second checkpoint."""
    small = tmp / "small"
    small.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=10m", "none", small],
                                           capture_output=True).returncode != 0:
        left_out("a full file system: no tmpfs can be mounted")
        return
    try:
        keys = dict(model__type="default", model__num_layers=-1, checkpoint__num_checkpoints_read=-1, model__model_size_bytes=4 << 20,
                    checkpoint__checkpoint_folder=small / "saved")
        out, _, done = only(tmp, "full", 1, status=1, **keys)
        assert "space" in done.stderr.lower() and len(done.stderr.splitlines()) <= 2, done.stderr
        left = files(small / "saved")
        assert sorted(left) == [f"global_epoch1_step{i}/model_states-0.pt" for i in (1, 2)], left
        assert all(whole(small / "saved" / f) for f in left)
        each = load(out)["checkpoint"]["save"]["each"]
        assert [c["whole"] for c in each] == [True, True, False], each
        # no space for even one: said before anything is written
        _, _, done = only(tmp, "full", 1, status=1, **{**keys, "model__model_size_bytes": 90 << 20,
                                                       "checkpoint__checkpoint_folder": small / "other"})
        assert "free" in done.stderr and not (small / "other").exists(), done.stderr
    finally:
        subprocess.run(["umount", small], check=True)


def torch_opens(tmp):
    try:
        import torch
    except ImportError:
        left_out("opening with PyTorch: torch is not installed")
        return
    total = 0
    for f in sorted((tmp / "only2-saved" / "global_epoch1_step1").iterdir()):
        for layer in torch.load(f, map_location="cpu").values():
            for tensor in layer.values() if isinstance(layer, dict) else [layer]:
                total += tensor.numel() * tensor.element_size()
    assert total == load(tmp / "only2-out")["checkpoint"]["total_bytes"], total


def main():
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        for part in (training, alone, partial, torch_opens, workloads, by_time, background, killed, full):
            begin = time.time()
            part(tmp)
            print(f"   {part.__name__}: {time.time() - begin:.1f} s")


if __name__ == "__main__":
    main()
