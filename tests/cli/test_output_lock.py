"""Two runs do not write into one folder of results at a time; what a killed run left does not lock it."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER, load, stoker, tiny  # noqa: E402

with tempfile.TemporaryDirectory() as tmp:
    data, out = pathlib.Path(tmp, "data"), pathlib.Path(tmp, "out")
    quick = tiny(data, out, fmt="npy", files=8)
    slow = tiny(data, out, fmt="npy", files=8, train__computation_time=30)
    lock = out / ".stoker_run.lock"
    stoker("run", *quick,)
    assert not lock.exists()
    for end in (signal.SIGINT, signal.SIGKILL):
        first = subprocess.Popen([STOKER, "run", "-q", *slow], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # it takes the lock, then removes what an earlier run left
        while not lock.exists() or not lock.read_text() or (out / "result.json").exists():
            assert first.poll() is None
            time.sleep(0.01)
        done = stoker("run", *quick, status=1)
        assert f"process {first.pid} on host" in done.stderr and "-o" in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert not (out / "result.json").exists()  # neither of the two has ended
        first.send_signal(end)
        first.wait(timeout=60)
        assert lock.exists() == (end == signal.SIGKILL)
    # what would be taken for this run's, or for a process of it that writes
    old = [out / name for name in ("iostat.json", "trace-7.json", "7_output.json", ".stoker-taken-over")]
    kept = [out / name for name in ("notes.json", "trace-notes.json")]
    for path in old + kept:
        path.write_text("{}")
    stoker("run", *quick)
    assert load(out)["status"] == "complete" and not lock.exists()
    assert all(p.exists() for p in kept) and not any(p.exists() for p in old), list(out.iterdir())
    # the result of the same workload is replaced silently, that of another one is not lost without a word, whoever is quiet
    assert "is replaced" not in stoker("run", *quick).stderr
    other = [*tiny(pathlib.Path(tmp, "other"), out, fmt="npy", files=8)]
    other[other.index(quick[0])] = "cosmoflow_h100"
    small = ["dataset.num_files_eval=0", "train.epochs=1", "workflow.evaluation=false", "workflow.generate_data=true"]
    said = stoker("run", *other, *small, "-q").stderr
    assert f"the result of default of {time.strftime('%Y')}-" in said and f"in '{out}' is replaced" in said, said
    assert load(out)["workload"] == "cosmoflow_h100"
    (out / "result.json").unlink()
    said = stoker("run", *quick, "-q").stderr
    assert "the result of another program in" in said, said
