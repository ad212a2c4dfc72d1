"""What a disk holds after a loss of power, at any moment of what was written to it. A disk is a loop device over a file
of a file system in user space that logs each write and each flush (log= of tests/rigs/slow_fs.c). Raises Unavailable with
the reason where it cannot be had.

A flush makes all writes before it safe. Of those since the last flush a disk has kept all, none, or any: each 4 KiB of
them by itself.
"""
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import time

from loop_device import Unavailable, sh
from slow_fs import SlowFs

HEAD = struct.Struct("=QQ")
PIECE = 4096
MAKE = {"ext4": ["mkfs.ext4", "-q", "-F", "-m", "0", "-J", "size=8"], "xfs": ["mkfs.xfs", "-q", "-f"],
        "btrfs": ["mkfs.btrfs", "-q", "-f"]}
SIZE_MIB = {"ext4": 128, "xfs": 320, "btrfs": 256}


def mounted(image, mount, kind):
    """The loop device over the image, which is mounted."""
    node = sh("losetup", "-f", "--show", image)
    try:
        # the one before may be on its way out, with the same UUID
        sh("mount", *(["-o", "nouuid"] if kind == "xfs" else []), node, mount)
    except subprocess.CalledProcessError:
        sh("losetup", "-d", node, check=False)
        raise
    return node


def unmount(node, mount):
    for _ in range(50):
        if subprocess.run(["umount", mount], capture_output=True).returncode == 0:
            break
        time.sleep(0.1)
    else:
        subprocess.run(["umount", "-l", mount], capture_output=True)
    for _ in range(50):
        if subprocess.run(["losetup", "-d", node], capture_output=True).returncode == 0:
            break
        time.sleep(0.1)


class Disk:
    """with Disk("ext4") as disk: disk.record(work) and then, for each cut, disk.after(cut, keep) as the mount."""

    def __init__(self, kind, mib=0, backing="/dev/shm"):
        self.kind, self.mib = kind, mib or SIZE_MIB[kind]
        self.tmp = pathlib.Path(tempfile.mkdtemp(dir=backing, prefix="stoker-power-"))
        self.mount = self.tmp / "mount"
        self.entries = []  # (offset, place in the log) of a write, (None, 0) of a flush

    def __enter__(self):
        if os.geteuid() != 0:
            raise Unavailable("a loop device needs root")
        if not shutil.which(MAKE[self.kind][0]):
            raise Unavailable(f"{MAKE[self.kind][0]} is not installed")
        self.mount.mkdir()
        (self.tmp / "disk").mkdir()
        self.image, self.log = self.tmp / "disk/image", self.tmp / "log"
        sh("truncate", "-s", f"{self.mib}M", self.image)
        try:
            sh(*MAKE[self.kind], self.image)
            shutil.copyfile(self.image, self.tmp / "empty")
            unmount(mounted(self.image, self.mount, self.kind), self.mount)
        except subprocess.CalledProcessError as e:
            self.__exit__()
            raise Unavailable(f"no {self.kind} on a loop device: {e.stderr}") from e
        shutil.copyfile(self.image, self.tmp / "empty")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.tmp, ignore_errors=True)

    def record(self, work):
        """work(folder) on the empty disk; entries as they are when it returns, and what the file system writes when it
        is unmounted."""
        with SlowFs(self.tmp / "disk", log=self.log, keep=1) as shown:
            node = mounted(f"{shown}/image", self.mount, self.kind)
            try:
                work(self.mount)
                self.ended = self._load()
            finally:
                unmount(node, self.mount)
        self._load()

    def _load(self):
        self.entries, at, data = [], 0, self.log.read_bytes()
        while at + HEAD.size <= len(data):
            offset, n = HEAD.unpack_from(data, at)
            self.entries.append((offset if n else None, at + HEAD.size, n))
            at += HEAD.size + n
        self.data = data
        return len(self.entries)

    def cuts(self):
        """Moments that differ: each flush, and each write behind it."""
        return range(1, len(self.entries) + 1)

    def after(self, cut, keep):
        """The image after `cut` entries and a loss of power. keep(): whether a piece that is not safe was kept."""
        image = self.tmp / "cut"
        sh("cp", "--sparse=always", self.tmp / "empty", image)
        safe = max((i for i, e in enumerate(self.entries[:cut]) if e[0] is None), default=-1)
        with open(image, "r+b") as f:
            for i, (offset, at, n) in enumerate(self.entries[:cut]):
                if offset is None:
                    continue
                for p in range(0, n, PIECE):
                    if i < safe or keep():
                        f.seek(offset + p)
                        f.write(self.data[at + p:at + min(n, p + PIECE)])
        return image
