"""A signal and the watchdog end the check of the dataset before a run; a SIGHUP that is ignored ends nothing."""
# mostly waits
# tier: long
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
    keys = dict(fmt="npy", files=70, dataset__record_length_bytes=64)
    stoker("run", *tiny(data, out, **keys))
    slow = dict(keys, workflow__generate_data="false", storage__store="fault+posix", storage__fault__op="stat",
                storage__fault__nth=1, storage__fault__count=0, storage__fault__action="delay")

    # 70 looks of 1 s by two threads: not to their end
    new = pathlib.Path(tmp, "new")
    run = subprocess.Popen([STOKER, "run", *map(str, tiny(data, new, **slow, storage__fault__delay=1))],
                           stderr=subprocess.PIPE, text=True)
    while not (new / "dlio.log").exists():
        time.sleep(0.01)
    time.sleep(0.3)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=20)
    assert run.returncode == 1 and "stopped" in said, (run.returncode, said)

    # started so that the end of its terminal means nothing to it: it goes on
    keys.update(workflow__generate_data="false", train__computation_time=0.2)
    run = subprocess.Popen([STOKER, "run", *map(str, tiny(data, out, **keys, train__total_training_steps=10))],
                           stdout=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    while not (out / ".stoker_run.lock").exists():
        time.sleep(0.01)
    time.sleep(0.3)
    run.send_signal(signal.SIGHUP)
    assert run.wait(timeout=20) == 0 and load(out)["status"] == "complete"

    done = stoker("run", *tiny(data, out, **slow, storage__fault__delay=3, run__watchdog=1), status=1)
    assert "run.watchdog" in done.stderr and "does not answer" in done.stderr, done.stderr
