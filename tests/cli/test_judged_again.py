"""What a run wrote is what its measures give when they are judged again: runs of every kind, each audited as it was left, with a
figure changed that only measures.bin tells, and with measures.bin damaged, cut or gone."""
# tier: long
# beside others
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER, stoker  # noqa: E402

GENERATE = "workflow.generate_data=true"
FEW = ["dataset.num_files_train=16", "dataset.num_files_eval=8", "dataset.record_length_bytes=4096", "train.computation_time=0.004",
       "train.epochs=2", "reader.batch_size=2", "dataset.num_subfolders_train=0", "dataset.num_subfolders_eval=0"]
KINDS = {
    "plain": ["-n", "2", GENERATE, "workflow.evaluation=false"],
    "evaluation": ["-n", "2", GENERATE, "workflow.evaluation=true", "evaluation.eval_time=0.002"],
    "only_evaluation": ["-n", "1", GENERATE, "workflow.train=false", "workflow.evaluation=true"],
    "dlio": ["-n", "2", GENERATE, "compat.dlio=true"],
    "tensorflow": ["-n", "1", GENERATE, "dataset.format=tfrecord", "framework=tensorflow", "reader.data_loader=tensorflow"],
    "dali": ["-n", "1", GENERATE, "reader.data_loader=dali"],
    "memory": ["-n", "2", GENERATE, "storage.store=throttle+memory", "storage.throttle.bandwidth=50e6", "reader.read_threads=2"],
    "throttled": ["-n", "2", GENERATE, "storage.store=throttle+posix", "storage.throttle.latency=0.004", "reader.read_threads=1",
                  "run.probe=true", "train.computation_time=0.001"],
    "cold": ["-n", "1", GENERATE, "storage.page_cache=cold_epochs"],
    "costs": ["-n", "1", GENERATE, "framework.costs=torch-1.13"],
    "checkpoints": ["-n", "2", GENERATE, "workflow.checkpoint=true", "checkpoint.steps_between_checkpoints=2",
                    "checkpoint.model_size_bytes=100000"],
    "jpeg": ["-n", "1", GENERATE, "dataset.format=jpeg", "dataset.record_length_bytes=3000"],
    "traced": ["-n", "1", GENERATE, "run.trace=chrome"],
}


def audit(folder, status=0):
    done = stoker("audit", "--json", folder, status=status)
    return json.loads(done.stdout)["results"][0]


def made(tmp, name, arguments):
    folder = tmp / name
    extra = [f"checkpoint.checkpoint_folder={tmp / 'checkpoints'}"] if "checkpoint" in name else []
    stoker("run", "default", *FEW, *arguments, f"dataset.data_folder={tmp / ('data_' + name)}", *extra, "-o", folder)
    return folder


def unchanged(name, folder):
    found = audit(folder)
    wrong = [f for f in found["findings"] if f["check"] in ("figures", "verdict", "digest", "identity")]
    assert not wrong, (name, wrong)
    compared = {c["name"]: c["compared"] for c in found["checked"]}
    assert compared.get("measures", 0) > 100, (name, compared, found["unchecked"])
    assert compared.get("judgement", 0) > 10, (name, compared, found["unchecked"])
    return sum(compared.values())


def sealed(folder):
    """The digests written again."""
    path = folder / "result.json"
    result = json.loads(path.read_text())
    for name, entry in result["integrity"]["files"].items():
        data = (folder / name).read_bytes() if (folder / name).exists() else b""
        entry.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    result["integrity"]["result_json_sha256"] = ""
    text = json.dumps(result, indent=4, ensure_ascii=False)
    head, tail = text.rsplit('"result_json_sha256": ""', 1)
    digest = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(f'{head}"result_json_sha256": "{digest}"{tail}')


def damaged(folder):
    """Whole, it is read; cut, changed or gone, that is a finding, and status 1 where nothing can be judged."""
    path = folder / "measures.bin"
    whole = path.read_bytes()
    for cut in (0, 10, 19, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        sealed(folder)
        found = audit(folder, status=None)
        fails = [f for f in found["findings"] if f["level"] == "fail"]
        assert any("measures.bin" in f["text"] for f in fails), (cut, fails)
    path.unlink()
    sealed(folder)
    found = audit(folder, status=None)
    assert any("measures.bin" in f["text"] and f["level"] == "fail" for f in found["findings"]), found
    path.write_bytes(whole)
    sealed(folder)
    assert not [f for f in audit(folder)["findings"] if f["check"] == "figures"]


def interrupted(tmp):
    folder = tmp / "interrupted"
    p = subprocess.Popen([STOKER, "run", "default", *FEW, GENERATE, "train.epochs=50", f"dataset.data_folder={tmp / 'data_i'}",
                          "-o", str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while p.poll() is None and not (folder / "dlio.log").exists():
        time.sleep(0.05)
    time.sleep(0.5)
    p.send_signal(signal.SIGINT)
    p.wait()
    return folder


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        compared = {name: unchanged(name, made(tmp, name, arguments)) for name, arguments in KINDS.items()}
        compared["interrupted"] = unchanged("interrupted", interrupted(tmp))
        damaged(tmp / "plain")
        print("compared:", compared)


if __name__ == "__main__":
    main()
