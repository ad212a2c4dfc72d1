#!/usr/bin/python3
"""Real jobs over shards, with the real libraries under torch's DataLoader: what explain says of them, and whether its
workload makes the same requests and steps."""
# tier: long
# mostly waits
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "jobs")]
import shards  # noqa: E402
from util import SANITIZED, STOKER, left_out, skip, stoker  # noqa: E402

SCRIPT = HERE.parent / "jobs" / "shards.py"
# of a step: what needs no word, and from where on no busy machine is the reason; two workers that each keep their order, and epochs theirs,
# come to more than TAU
STEP, FROM, TO, TAU = 0.15, 0.4, 4, 0.4
# of each: the keys of shards.py, and what has to be said
JOBS = {
    "webdataset": (dict(files=6, samples=(22, 28), shuffle=12, compute_ms=25), {"format": "webdataset", "files": 6}),
    "pipe": (dict(files=4, samples=(10, 10), bytes=(9000, 9000), pipe=True, members=("jpg", "json"), name="train-{:06d}.tar", epochs=2),
             {"format": "webdataset", "files": 4, "samples_per_file": 10}),
    "parquet": (dict(kind="parquet", files=4, samples=(20, 29), bytes=(2000, 9000), rows=16, name="train-{:05d}-of-00004.parquet"),
                {"format": "parquet", "files": 4}),
    "mds": (dict(kind="mds", shuffle=1, files=4, samples=(12, 12)), {"format": "mds"}),
    "litdata": (dict(kind="litdata", shuffle=1, files=11, samples=(8, 8)), {"format": "litdata", "files": 11, "samples_per_file": 8}),
}


def job(name, root):
    """Makes the dataset and records the job; returns (what both printed, the recording)."""
    keys = {**JOBS[name][0], "data": str(root / "data")}
    python = shards.python(keys.get("kind", "webdataset"))
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1")
    printed = []
    for what, before in (("make", []), ("train", [STOKER, "record", "-o", root / "recording", "--"])):
        done = subprocess.run([*before, python, SCRIPT, what, json.dumps(keys)], capture_output=True, text=True, env=env, cwd=root)
        if done.returncode and "ModuleNotFoundError" in done.stderr:
            return None, done.stderr.strip().splitlines()[-1]
        assert done.returncode == 0, (name, what, done.stderr[-2000:])
        printed.append(json.loads(done.stdout.splitlines()[-1]))
    return {**printed[0], **printed[1]}, root / "recording"


def says(name, truth, recording, yaml):
    """What is said is right; what cannot be known is not said."""
    said = json.loads(stoker("explain", recording, "--json").stdout)["values"]
    value = {k: v.get("value") for k, v in said.items()}
    want = {**JOBS[name][1], "samples": truth["samples"][0], "workers": 2, "batch": 4, "epochs": 2, "steps": sum(truth["steps"])}
    assert {k: value.get(k) for k in want} == want, (name, value)
    text = yaml.read_text()
    for line in (f"  format: {want['format']} ", "  batch_size: 4 ", "  read_threads: 2 ", "  access: recorded ", "  order: recorded "):
        assert line in text, (name, line, text)


def run(recording, yaml, root, number, record=False):
    out = root / f"run{number}"
    before = ["record", "-o", root / "ours", "--", STOKER] if record else []
    # what checks the files reads about as much as a small job
    stoker(*before, "run", yaml, f"dataset.data_folder={root / 'generated'}", *(["workflow.generate_data=true"] if record else []),
           "storage.page_cache_files=0", "dataset.verify_samples=0", "-o", out)
    return json.loads(stoker("explain", recording, "--fidelity", root / "ours" if record else out, "--json").stdout)


def check(name, root):
    truth, recording = job(name, root)
    if truth is None:
        left_out(f"{name}: {recording}")
        return
    yaml = root / "job.yaml"
    stoker("explain", recording, "-o", yaml)
    says(name, truth, recording, yaml)
    same = run(recording, yaml, root, 0, record=True)
    assert same["requests_equal"] == 1 and same["reads"]["log"] == same["reads"]["here"] > 0, (name, same)
    # over the whole job: workers that read at once are in any order
    assert same["order_tau"] > TAU, (name, same)
    if "sizes: recorded" in yaml.read_text():
        sizes = [sorted(p.stat().st_size for p in pathlib.Path(d).rglob("*") if p.suffix in (".tar", ".mds", ".bin"))
                 for d in (root / "data", root / "generated")]
        # one file may fill up the last batches
        assert [n for n in sizes[0] if n not in sizes[1]] == [], (name, sizes)

    if SANITIZED:
        return
    # the job itself takes another time when it runs again, and other work on the machine takes more: its figures are told
    for n in (1, 2):
        t = run(recording, yaml, root, n)["step"]
        here = {k: t[f"here_{k}_s"] / t[f"log_{k}_s"] for k in ("median", "mean")}
        assert t["log_n"] == t["here_n"], (name, t)
        print(f"{name}: a step takes " + ", ".join(f"{v:.2f} of the {k}" for k, v in here.items()), flush=True)
        if abs(here["median"] - 1) > STEP:
            print(f"attempts: step of {name}: {here['median']:.2f} of the job's median", flush=True)
        if FROM < here["median"] < TO:
            return
    raise AssertionError((name, t))


def content_gone(root):
    """Where the files are no longer there, the names and requests tell; samples of a stream are not known."""
    shutil.rmtree(root / "data")
    said = json.loads(stoker("explain", root / "recording", "--json").stdout)["values"]
    assert said["format"]["value"] == "webdataset" and said["samples"].get("value") is None, said
    assert said["batch"].get("value") is None and said["steps"]["value"] > 0, said
    stoker("explain", root / "recording", "-o", root / "gone.yaml")
    assert "a sample here is a step" in (root / "gone.yaml").read_text()


def bare_bin(root):
    """A .bin of any name is not LitData's, and neither is a chunk without an index beside it."""
    for name in ("all.bin", "chunk-0-0.bin"):
        folder = root / name
        folder.mkdir()
        (folder / name).write_bytes(bytes(200000))
        code = f"f = open({str(folder / name)!r}, 'rb')\nfor _ in range(2):\n    f.seek(0)\n    while f.read(8192): pass\n"
        stoker("record", "-o", folder / "recording", "--", "/usr/bin/python3", "-c", code)
        said = stoker("explain", folder / "recording", "--json").stdout
        assert "litdata" not in said, said


def main():
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True).returncode:
        skip("python3-torch is not installed")
    for name in sys.argv[1:] or JOBS:
        with tempfile.TemporaryDirectory() as folder:
            check(name, pathlib.Path(folder))
            if name == "webdataset" and (pathlib.Path(folder) / "recording").exists():
                content_gone(pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        bare_bin(pathlib.Path(folder))


if __name__ == "__main__":
    main()
