"""Runs over a file system in user space whose requests hang when told to: what the tests of hung storage share."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from slow_fs import SlowFs
from util import STOKER, tiny, wait_for

WATCHDOG_S, LIMIT_S = 1, 10


def has_ended(pid):
    """Also one that the kernel keeps, because a thread of it, the first one perhaps, is in a request that never returns."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        pending = [line.split()[1] for line in open(f"/proc/{pid}/status") if line.startswith(("SigPnd", "ShdPnd"))]
    except OSError:
        return True
    return fields[0] == "Z" or int(fields[6]) & 4 or any(int(p, 16) >> signal.SIGKILL - 1 & 1 for p in pending)


def result_in(folder):
    try:
        return json.loads(pathlib.Path(folder, "result.json").read_text())
    except (OSError, ValueError):
        return None


class HungRun:
    """with HungRun(**keys) as run: a dataset below a mount. MOUNT in a value is its path.

    start(), hang(when it is to begin, kinds of requests), then outcome(). The program writes to self.text."""

    def __init__(self, launcher=(), command="run", out_below=False, generated=True, direct=1, ranks=2, **keys):
        self.tmp = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
        self.source = self.tmp / "source"
        self.source.mkdir()
        self.fs = SlowFs(self.source, control=str(self.tmp / "control"), direct=direct)
        self.launcher, self.command, self.out_below, self.generated = launcher, command, out_below, generated
        self.ranks, self.process, self.log = ranks, None, None
        self.keys = dict(fmt="npy", files=16, dataset__record_length_bytes=65536, train__epochs=500,
                         train__computation_time=0.02, run__watchdog=WATCHDOG_S)
        self.keys.update(keys)

    def __enter__(self):
        if self.generated:
            shape = {k: v for k, v in self.keys.items() if k.startswith(("dataset__", "fmt", "files"))}
            subprocess.run([STOKER, "generate", *map(str, tiny(self.source / "data", None, **shape))], check=True,
                           capture_output=True, timeout=60)
        self.mount = self.fs.__enter__()
        self.out = self.source / "out" if self.out_below else self.tmp / "out"  # as seen from outside
        return self

    def start(self):
        out = f"{self.mount}/out" if self.out_below else self.out
        keys = {"workflow__generate_data": str(not self.generated).lower(), **self.keys}
        keys = {k: str(v).replace("MOUNT", self.mount) for k, v in keys.items()}
        files = int(keys.pop("files"))
        arguments = tiny(f"{self.mount}/data", out if self.command == "run" else None, files=files, **keys)
        ranks = [] if self.launcher or self.command != "run" else ["-n", str(self.ranks)]
        self.text = open(self.tmp / "text", "w+")
        env = dict(os.environ, TMPDIR=str(self.tmp), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.process = subprocess.Popen([*self.launcher, os.path.abspath(STOKER), self.command,
                                         *map(str, arguments), *ranks],
                                        stdout=self.text, stderr=subprocess.STDOUT, env=env, start_new_session=True)

    def logged(self, text, times=1):
        log = self.out / "dlio.log"
        return log.exists() and log.read_text(errors="replace").count(text) >= times

    def hang(self, when, *requests):
        assert wait_for(when, 30), "the moment never came: " + self.said()
        self.fs.hang(*requests)
        self.begun = time.monotonic()

    def said(self):
        return (self.tmp / "text").read_text(errors="replace")

    def results(self):
        if result_in(self.out) and not self.out_below:
            return self.out
        return next((p for p in self.tmp.glob("stoker-results-*") if result_in(p)), None)

    def seconds_to(self, what):
        """From the watchdog; None: not within the limit and some more."""
        if not wait_for(what, LIMIT_S + WATCHDOG_S + 5):
            return None
        return time.monotonic() - self.begun - WATCHDOG_S

    def outcome(self):
        """Seconds until the results are there, and until the process has ended; and the result."""
        written = self.seconds_to(lambda: self.results() or has_ended(self.process.pid))
        ended = self.seconds_to(lambda: has_ended(self.process.pid))
        return written, ended, result_in(self.results()) if self.results() else None

    def __exit__(self, *_):
        try:
            self.fs.hang()
            if self.process and wait_for(lambda: self.process.poll() is not None, 5) is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        finally:
            self.fs.__exit__()
            shutil.rmtree(self.tmp, ignore_errors=True)
        return False
