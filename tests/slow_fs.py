"""A slow file system in user space over a folder, for tests: tests/rigs/slow_fs.c. Raises Unavailable with the reason
where it cannot be had."""
import os
import pathlib
import subprocess
import tempfile
import time

from loop_device import Unavailable

BINARY = pathlib.Path(os.environ.get("STOKER_TOOLS", "build/tests"), "slow_fs")


class SlowFs:
    """with SlowFs(folder, read_us=2000, ...) as mount: the keys are those of slow_fs.c."""

    def __init__(self, source, **keys):
        self.source, self.keys = str(source), [f"{k}={v}" for k, v in keys.items()]
        self.control = keys.get("control")
        self.process = self.mount = None

    def __enter__(self):
        if not BINARY.exists():
            raise Unavailable(f"{BINARY} was not built: libfuse3-dev is not installed")
        if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
            raise Unavailable("a file system in user space needs root and /dev/fuse")
        self.mount = tempfile.mkdtemp()
        self.process = subprocess.Popen([BINARY, self.source, self.mount, *self.keys], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE)
        for _ in range(200):
            if os.path.ismount(self.mount):
                return self.mount
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        error = self.process.stderr.read().decode() if self.process.poll() is not None else "it was not mounted in time"
        self.__exit__()
        raise Unavailable(f"no file system in user space: {error.strip()}")

    def hang(self, *requests):
        """Requests of these kinds (slow_fs.c, or "all") do not come back until others are named, or none."""
        part = pathlib.Path(f"{self.control}.part")
        part.write_text(" ".join(requests))
        part.rename(self.control)

    def __exit__(self, *_):
        if self.control:
            self.hang()
        for _ in range(50):
            if not os.path.ismount(self.mount) or subprocess.run(["umount", self.mount], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        else:
            subprocess.run(["umount", "-l", self.mount], capture_output=True)
        if self.process:
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process.stderr.close()
        os.rmdir(self.mount)
        return False
