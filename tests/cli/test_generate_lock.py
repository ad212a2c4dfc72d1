"""Two programs do not generate into one folder at a time; the one that waits is told who is there."""
# mostly waits
import fcntl
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER, left_out, load, stoker, tiny, wait_for  # noqa: E402

ENDING = """
import ctypes, fcntl, os, sys, threading, time
held = open(sys.argv[1], "w")
fcntl.flock(held, fcntl.LOCK_EX)
threading.Thread(target=lambda: (time.sleep(float(sys.argv[2])), os._exit(0))).start()
print("locked", flush=True)
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
"""

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
    assert f"process {first.pid} on host" in done.stderr and "since 20" in done.stderr, done.stderr
    assert f": {STOKER} run default" in done.stderr, done.stderr
    assert first.wait(timeout=60) == 0 and not lock.exists()
    # what a killed program left does not matter
    lock.write_text("process 1 on host 'gone'\n")
    stoker("run", *keys)
    assert not lock.exists()

    # one that is ending is waited for: its first thread is gone, another one still has the file
    ending = subprocess.Popen([sys.executable, "-c", ENDING, lock, "3"], stdout=subprocess.PIPE, text=True)
    assert ending.stdout.readline() == "locked\n"
    assert wait_for(lambda: ") Z " in pathlib.Path(f"/proc/{ending.pid}/stat").read_text(), 10)
    begin = time.monotonic()
    stoker("run", *keys)
    assert 1 < time.monotonic() - begin < 30 and ending.wait(30) == 0
    # a lock that a server of files keeps for a machine that was started again since then, and not any other
    host, boot, pids = os.uname().nodename, open("/proc/sys/kernel/random/boot_id").read().strip(), os.readlink("/proc/self/ns/pid")
    elsewhere = ["unshare", "--pid", "--fork", "--mount-proc"]  # where the holder is not seen
    if subprocess.run([*elsewhere, "true"], capture_output=True).returncode:
        left_out("locks of processes that are not seen: no namespaces")
    else:
        with open(lock, "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            for text, status in ((f"process 9 on host '{host}' since x: y\n{boot} {pids}\n", 1), ("", 1), ("process 9 on", 1),
                                 (f"process 9 on host 'another' since x: y\n{boot[::-1]} {pids}\n", 1),
                                 (f"process 9 on host '{host}' since x: y\n{boot[::-1]} {pids}\n", 0)):
                held.seek(0)
                held.truncate()
                held.write(text)
                held.flush()
                done = subprocess.run([*elsewhere, STOKER, "run", *keys], capture_output=True, text=True, timeout=60)
                assert done.returncode == status and lock.exists() == (status == 1), (text, done.stderr)

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
