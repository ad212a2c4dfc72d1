"""Files of DLIO's kind hold what their readers can compute with, whatever became of the run: no null, NaN or Infinity
in summary.json, N_output.json, N_per_epoch_stats.json; and audit maps what the lists leave out to its epochs."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import dlio_readers  # noqa: E402
from util import STOKER, load, skip, stoker, tiny  # noqa: E402

ONE_STEP = {"files": 2, "train__epochs": 2}
EVALUATED = {"dataset__num_files_eval": 2, "workflow__evaluation": "true", "reader__batch_size_eval": 2}
SAVED = {"workflow__checkpoint": "true", "model__model_size_bytes": 65536}
CHECKPOINTS = {**SAVED, "workflow__train": "false", "workflow__generate_data": "false"}

# name -> keys, command before them, signal after the first step (or before it), whether there is a summary
SITUATIONS = {
    "one step": (ONE_STEP, {}),
    "one step, as DLIO computes": ({**ONE_STEP, "compat__dlio": "true"}, {}),
    "one step, 2 accelerators": ({**ONE_STEP, "files": 4, **EVALUATED, "dataset__num_files_eval": 4}, {"n": 2}),
    "one step in the last epoch": ({"files": 8, "train__epochs": 3, "train__total_training_steps": 5}, {}),
    "one step in each evaluation": ({"files": 8, "train__epochs": 2, **EVALUATED}, {}),
    "one step in each evaluation, as DLIO computes": (
        {"files": 8, "train__epochs": 2, **EVALUATED, "dataset__num_files_eval": 4, "compat__dlio": "true"}, {"n": 2}),
    "every step excluded": ({"files": 8, "output__metric__exclude_start_steps": 100}, {}),
    "a checkpoint after each step": ({"files": 8, "train__epochs": 2, **SAVED,
                                      "checkpoint__steps_between_checkpoints": 1}, {}),
    "checkpoints on, none due": ({"files": 8, **SAVED, "checkpoint__checkpoint_after_epoch": 9}, {}),
    "evaluation alone": ({**EVALUATED, "dataset__num_files_eval": 8, "workflow__train": "false"}, {"split": True}),
    "an evaluation of one step alone": ({**EVALUATED, "workflow__train": "false"}, {"split": True}),
    "checkpoints alone": ({**CHECKPOINTS, "checkpoint__num_checkpoints_write": 2,
                           "checkpoint__num_checkpoints_read": 1}, {"n": 2}),
    "checkpoints of nothing": ({**CHECKPOINTS, "model__model_size_bytes": 0, "checkpoint__num_checkpoints_write": 2},
                               {}),
    "neither written nor read": ({**CHECKPOINTS, "checkpoint__num_checkpoints_write": 0,
                                  "checkpoint__num_checkpoints_read": 0}, {}),
    "generation alone": ({"workflow__train": "false"}, {"summary": False}),
    "interrupted in an epoch": ({"files": 64, "train__epochs": 3, "train__computation_time": 0.2}, {"stop": 0.6}),
    "interrupted in the first step": ({"files": 64, "train__computation_time": 30, **SAVED}, {"stop": 0.4}),
    "interrupted before the first batch": ({"files": 8, "reader__preprocess_time": 30, **EVALUATED}, {"stop": 0.4}),
}


def make(tmp, name):
    keys, how = SITUATIONS[name]
    at = tmp / re.sub(r"\W+", "_", name)
    keys = {"checkpoint__checkpoint_folder": at / "saved", **keys}
    if how.get("split"):  # evaluations alone: of a dataset that is there
        stoker("run", *tiny(at / "data", at / "gen", workflow__train="false",
                            **{k: v for k, v in keys.items() if k.startswith("dataset")}))
        keys["workflow__generate_data"] = "false"
    args = [STOKER, "run", "-n", str(how.get("n", 1)), *tiny(at / "data", at / "out", **keys),
            f"hydra.run.dir={at}/out"]
    run = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if "stop" in how:
        log, end = at / "out/dlio.log", time.monotonic() + 60
        while not (log.exists() and "Starting block 1" in log.read_text()) and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(how["stop"])
        run.send_signal(signal.SIGTERM)
    said = run.communicate(timeout=120)[0]
    assert (run.returncode != 0) == ("stop" in how), (name, run.returncode, said)
    found = dlio_readers.folder(at / "out")
    assert (found is not None) == how.get("summary", True), (name, os.listdir(at / "out"))
    return at / "out", found


def seal(out):
    """Writes the digests of result.json again."""
    path = out / "result.json"
    result = load(out)
    for name in result["integrity"]["files"]:
        data = (out / name).read_bytes()
        result["integrity"]["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    result["integrity"]["result_json_sha256"] = ""
    text = json.dumps(result, indent=4)
    digest = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(text.replace('"result_json_sha256": ""', f'"result_json_sha256": "{digest}"'))


def doubts(out):
    """What audit says against the figures of a result."""
    found = json.loads(stoker("audit", out, "--json", status=None).stdout)
    return [f for f in found["results"][0]["findings"] if f["check"] in ("figures", "digest", "identity")]


def main():
    try:
        import yaml  # noqa: F401
    except ImportError:
        skip("Python has no yaml")
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            made = dict(zip(SITUATIONS, pool.map(lambda n: make(tmp, n), SITUATIONS)))
        for name, (out, found) in made.items():
            if found is None:
                continue
            metric, result = found["metric"], load(out)
            for key in ("au", "throughput"):  # what a list has, result.json has, and where it has not, why
                values = metric.get(dlio_readers.LISTS[key == "throughput"], [])
                epochs = result.get("training", {}).get("epochs", [])
                of = "au_percent" if key == "au" else "throughput_samples_per_s"
                also = [e[of] for e in epochs if of in e and e["steps"]]
                assert len(values) == len(also) and all(abs(a - b) <= 1e-9 * abs(b) for a, b in zip(values, also)), (
                    name, values, epochs)
                assert all(("au_percent" in e) != ("au_missing_because" in e) for e in epochs), name
            print(f"   {name}: {metric}")
        assert made["one step"][1]["metric"]["train_au_percentage"] == []
        assert len(made["one step in the last epoch"][1]["metric"]["train_au_percentage"]) == 1
        evals = made["one step in each evaluation"][1]["metric"]
        assert evals["eval_au_percentage"] == [] and len(evals["eval_throughput_samples_per_second"]) == 2, evals

        # epoch 1 has 4 steps, epoch 2 one; earlier versions wrote null for the second
        out = made["one step in the last epoch"][0]
        assert doubts(out) == [], doubts(out)
        earlier = load(out)
        earlier["schema"], earlier["environment"]["versions"]["build"] = 1, "of an earlier version"
        del earlier["integrity"]["files"]["measures.bin"]
        (out / "result.json").write_text(json.dumps(earlier, indent=4))
        (out / "measures.bin").unlink()
        s = load(out, "summary.json")
        s["metric"]["train_au_percentage"].append(None)
        s["metric"]["train_throughput_samples_per_second"].append(None)
        (out / "summary.json").write_text(json.dumps(s, indent=4))
        seal(out)
        assert doubts(out) == [], doubts(out)
        s["metric"]["train_au_percentage"][0] -= 5
        (out / "summary.json").write_text(json.dumps(s, indent=4))
        seal(out)
        assert "train_au_percentage, epoch 1," in str(doubts(out)), doubts(out)
        for name in ("one step", "one step in each evaluation", "one step in each evaluation, as DLIO computes",
                     "interrupted in an epoch", "interrupted before the first batch", "checkpoints alone"):
            assert doubts(made[name][0]) == [], (name, doubts(made[name][0]))


if __name__ == "__main__":
    main()
