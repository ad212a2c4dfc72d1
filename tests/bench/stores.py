"""Stores of known speed that two programs can be compared on: files in memory, a disk held to a rate, calls that are
made slower. with Store(dict(kind=...), bytes) as s: s.data is an empty folder, s.surround() what subprocess needs."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from loop_device import LoopDevice, Unavailable, join  # noqa: E402

TMPFS = "/dev/shm"


class Store:
    """kind memory: a tmpfs. disk: ext4 on a loop device held to mib_s; a file leaves the page cache when it is closed. calls: a tmpfs
    whose opens and reads of other programs take open_us, read_us and the time of bytes_s more."""

    def __init__(self, spec, size):
        self.spec, self.size = spec, size
        self.mount = self.device = self.library = self.busy = None

    def __enter__(self):
        if os.geteuid() != 0:
            raise Unavailable("a store of known speed needs root")
        try:
            getattr(self, "_" + self.spec["kind"])()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _tmpfs(self):
        self.mount = tempfile.mkdtemp()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", self.mount], check=True)
        self.data = pathlib.Path(self.mount, "data")

    _memory = _tmpfs

    def _calls(self):
        self._tmpfs()
        self._preload()

    def _preload(self):
        self.library = tempfile.mkdtemp(dir=TMPFS)
        made = subprocess.run(["cc", "-O2", "-shared", "-fPIC", HERE.parent / "rigs/slow_calls.c", "-o",
                               f"{self.library}/slow.so", "-ldl"], capture_output=True, text=True)
        if made.returncode:
            raise Unavailable(f"slow_calls.c cannot be built: {made.stderr}")
        self.busy = f"{self.library}/busy"
        pathlib.Path(self.busy).write_bytes(bytes(4096))

    def _disk(self):
        self.device = LoopDevice(self.size // (1 << 20) + 128).__enter__()
        self.data = pathlib.Path(self.device.mount, "data")
        rate = int(self.spec["mib_s"] * (1 << 20))
        self.group = self.device.group("blkio", blkio__throttle__read_bps_device=f"{self.device.number()} {rate}")
        if not self.group:
            raise Unavailable("there is no control group for block devices")
        self._preload()

    def evict(self):
        """Before a run, so that its first epoch is cold."""
        if self.device:
            self.device.cold()

    def surround(self):
        """Keywords for subprocess: environment and control group of a program that is measured."""
        env = dict(os.environ)
        if self.library:
            env.update(LD_PRELOAD=f"{self.library}/slow.so", SLOW_DEVICE=str(os.stat(self.data).st_dev),
                       SLOW_DROP="1" if self.device else "0",
                       SLOW_OPEN_US=str(self.spec.get("open_us", 0)), SLOW_READ_US=str(self.spec.get("read_us", 0)),
                       SLOW_BYTES_S=str(self.spec.get("bytes_s", 0)), SLOW_SHARED=self.busy)
        return dict(env=env, preexec_fn=join([self.group]) if self.device else None)

    def __exit__(self, *_):
        if self.device:
            self.device.__exit__()
        if self.mount:
            subprocess.run(["umount", self.mount], check=False)
            os.rmdir(self.mount)
        if self.library:
            shutil.rmtree(self.library)
        return False
