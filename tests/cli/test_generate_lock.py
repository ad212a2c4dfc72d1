"""Two programs do not generate into one folder at a time; the one that waits is told who is there."""
# mostly waits
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER, load, stoker, tiny  # noqa: E402

with tempfile.TemporaryDirectory() as tmp:
    data, out = pathlib.Path(tmp, "data"), pathlib.Path(tmp, "out")
    keys = tiny(data, out, fmt="npy", files=8, workflow__train="false")
    slow = ["storage.store=fault+posix", "storage.fault.op=sync", "storage.fault.nth=1", "storage.fault.count=0",
            "storage.fault.action=delay", "storage.fault.delay=0.5"]
    first = subprocess.Popen([STOKER, "run", *keys, *slow], stdout=subprocess.DEVNULL)
    lock = data / ".stoker_generate.lock"
    while not lock.exists() or not lock.read_text():
        assert first.poll() is None
        time.sleep(0.01)
    done = stoker("run", *keys, status=1)
    assert f"process {first.pid} on host" in done.stderr, done.stderr
    assert first.wait(timeout=60) == 0 and not lock.exists()
    # what a killed program left does not matter
    lock.write_text("process 1 on host 'gone'\n")
    stoker("run", *keys)
    assert not lock.exists()

    # a run that only generates leaves what it was asked to do, and how it ended
    r = load(out)
    assert r["status"] == "complete" and r["generation"]["files_kept"] == 8 and "training" not in r, r
    assert not (out / "summary.json").exists()
    for name in ("config.yaml", "overrides.yaml", "hydra.yaml"):
        assert (out / ".hydra" / name).exists(), name

    # nothing is left where nothing was written
    stoker("run", *tiny("/", out, workflow__train="false"), status=2)
    stoker("run", *tiny(data / "new", out, files=10**9, workflow__train="false", dataset__record_length_bytes=1e9),
           status=1)
    assert not (data / "new").exists()
