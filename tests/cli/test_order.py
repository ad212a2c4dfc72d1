"""DLIO's order, opened file by opened file: each golden case of tests/data/vectors/dlio-order.json is run
under strace and the files opened by each rank's workers must be DLIO's, in DLIO's sequence."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, SOURCE, STOKER, load, skip, stoker, tiny  # noqa: E402

if not shutil.which("strace"):
    skip("strace is not installed")
if SANITIZED:
    skip("strace and sanitizers do not go together")


def opened(trace):
    """Per thread name, the data files opened, in order."""
    names, files = {}, {}
    for line in trace.read_text().splitlines():
        m = re.match(r"^(\d+)\s+(.*)$", line)
        pid, call = m.group(1), m.group(2)
        m = re.match(r'prctl\(PR_SET_NAME, "([^"]*)"', call)
        if m:
            names[pid] = m.group(1)
        m = re.match(r'openat\(AT_FDCWD, "[^"]*/((?:train|valid)/[^"]*\.(?:npz|npy))", O_RDONLY', call)
        if m:
            files.setdefault(pid, []).append(m.group(1))
    return [files[p] for p in sorted(files, key=int)]


def one(case, tmp):
    c = case.get("config")
    if not c or c["format"] not in ("npz", "npy"):
        return False
    data, out, trace = tmp / "data", tmp / "out", tmp / "trace"
    shutil.rmtree(data, ignore_errors=True)
    keys = dict(files=c["num_files_train"], fmt=c["format"], dataset__record_length_bytes=1024,
                dataset__num_samples_per_file=c["num_samples_per_file"], reader__batch_size=c["batch_size"],
                reader__read_threads=c["read_threads"], train__epochs=c["epochs"],
                reader__file_shuffle=c["file_shuffle"], reader__sample_shuffle=c["sample_shuffle"],
                train__seed=c["seed"], compat__dlio="true", train__computation_time=0,
                dataset__num_files_eval=c["num_files_eval"], workflow__evaluation=bool(c["num_files_eval"]),
                evaluation__eval_time=0, reader__batch_size_eval=c["batch_size"],
                # looks into the page cache and at the content open files, too
                storage__page_cache_files=0, dataset__verify_samples=0)
    stoker("run", *tiny(data, out, workflow__train="false", **keys))
    subprocess.run(["strace", "-f", "-e", "trace=openat,prctl", "-o", trace, STOKER, "run", "-n",
                    str(c["np"]), *map(str, tiny(data, out, workflow__generate_data="false", **keys))],
                   check=True, capture_output=True, timeout=120)
    # a worker's whole run, all epochs one after another; DLIO's are kept by rank, epoch and worker
    expected = []
    for rank in case["ranks"].values():
        for part in ("train_epochs", "eval_epochs"):  # evaluation has workers of its own
            workers = {}
            for epoch in rank.get(part, []):
                for worker, files in epoch.items():
                    workers.setdefault(worker, []).extend(files)
            expected.extend(workers.values())
    got = opened(trace)
    assert sorted(got) == sorted(expected), f"{case['name']}:\n ours {sorted(got)}\n DLIO {sorted(expected)}"
    print(f"   {case['name']}: {len(got)} workers, {sum(map(len, got))} opens as DLIO's")
    return True


def main():
    cases = json.loads((SOURCE / "tests/data/vectors/dlio-order.json").read_text())["opened"]
    with tempfile.TemporaryDirectory() as tmp:
        done = sum(one(case, pathlib.Path(tmp)) for case in cases)
        print(f"{done} of {len(cases)} golden cases compared")
        assert done >= 3
        # the default order: the proof is in the result
        out = pathlib.Path(tmp, "default")
        stoker("run", *tiny(pathlib.Path(tmp, "d"), out, files=32, train__epochs=3,
                            reader__sample_shuffle="seed"), "-n", "2")
        epochs = load(out)["training"]["epochs"]
        assert all(e["order_proved"] for e in epochs), epochs


if __name__ == "__main__":
    main()
