"""File systems made for a test: ext4, xfs and btrfs on a loop device over a file, overlays, memory. Needs root; raises
Unavailable with the reason where one cannot be had. All of it is gone at the end."""
import os
import shutil
import subprocess
import tempfile

from loop_device import Unavailable, sh

MAKE = {"ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
        "xfs": ["mkfs.xfs", "-q", "-f", "-m", "reflink=1"], "btrfs": ["mkfs.btrfs", "-q", "-f", "-m", "single"]}
SMALLEST_MIB = {"ext4": 64, "xfs": 320, "btrfs": 128}


def need(*tools):
    if os.geteuid() != 0:
        raise Unavailable("mounting needs root")
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/sbin:/usr/sbin"
    for tool in tools:
        if not shutil.which(tool):
            raise Unavailable(f"{tool} is not installed")


def tried(what, *argv):
    try:
        return sh(*argv)
    except (subprocess.CalledProcessError, FileNotFoundError) as e:
        raise Unavailable(f"{what}: {(getattr(e, 'stderr', '') or str(e)).strip()}") from e


class Mounted:
    """with Mounted("xfs", "/var/tmp") as folder. The image is a sparse file in `backing`; `direct`: the loop device
    reads it past the page cache; `options` are mount's; `node` is a device to use in place of a loop device."""

    def __init__(self, kind, backing="/var/tmp", direct=True, options="", node=None, size_mib=0):
        self.kind, self.backing, self.direct, self.options = kind, backing, direct, options
        self.size_mib = size_mib or SMALLEST_MIB[kind]
        self.node, self.image, self.loop, self.folder = node, None, None, None

    def __enter__(self):
        need(MAKE[self.kind][0], "losetup", "mount")
        try:
            if not self.node:
                fd, self.image = tempfile.mkstemp(".img", "stoker-", self.backing)
                os.ftruncate(fd, self.size_mib << 20)
                os.close(fd)
                self.loop = tried("no loop device", "losetup", "-f", "--show",
                                  f"--direct-io={'on' if self.direct else 'off'}", self.image)
                self.node = self.loop
            tried(f"no {self.kind} can be made", *MAKE[self.kind], self.node)
            folder = tempfile.mkdtemp()
            option = ["-o", self.options] if self.options else []
            try:
                tried(f"{self.kind} cannot be mounted", "mount", "-t", self.kind, *option, self.node, folder)
            except Unavailable:
                os.rmdir(folder)
                raise
            self.folder = folder
        except Unavailable:
            self.__exit__()
            raise
        return self.folder

    def __exit__(self, *_):
        if self.folder:
            sh("umount", self.folder, check=False)
            os.rmdir(self.folder)
        if self.loop:
            sh("losetup", "-d", self.loop, check=False)
        if self.image:
            os.unlink(self.image)
        self.folder = self.loop = self.image = None
        return False

    def delivered(self):
        """Bytes that the device has read, by its own counter."""
        with open(f"/sys/block/{os.path.basename(self.node)}/stat") as f:
            return int(f.read().split()[2]) * 512


class Zram:
    """with Zram(64) as node: a disk of compressed memory."""

    def __init__(self, size_mib):
        self.size_mib, self.mine = size_mib, False

    def __enter__(self):
        need("mount")
        try:
            with open("/sys/block/zram0/disksize") as f:
                if int(f.read()) != 0:
                    raise Unavailable("zram0 is in use")
            with open("/sys/block/zram0/disksize", "w") as f:
                f.write(str(self.size_mib << 20))
            self.mine = True
        except OSError as e:
            raise Unavailable(f"there is no zram0: {e}") from e
        return "/dev/zram0"

    def __exit__(self, *_):
        if self.mine:
            with open("/sys/block/zram0/reset", "w") as f:
                f.write("1")
        return False


class Overlay:
    """with Overlay(folder) as mount: its layers are folders in `folder`, also `lower`, which may be filled before."""

    def __init__(self, folder):
        self.lower, self.upper, self.work, self.mount = (os.path.join(folder, d) for d in ("l", "u", "w", "m"))
        for d in (self.lower, self.upper, self.work, self.mount):
            os.makedirs(d, exist_ok=True)

    def __enter__(self):
        need("mount")
        tried("no overlay can be mounted", "mount", "-t", "overlay", "overlay", "-o",
              f"lowerdir={self.lower},upperdir={self.upper},workdir={self.work}", self.mount)
        return self.mount

    def __exit__(self, *_):
        sh("umount", self.mount, check=False)
        return False


class Tmpfs:
    """with Tmpfs() as folder."""

    def __enter__(self):
        need("mount")
        self.folder = tempfile.mkdtemp()
        try:
            tried("no tmpfs can be mounted", "mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", self.folder)
        except Unavailable:
            os.rmdir(self.folder)
            raise
        return self.folder

    def __exit__(self, *_):
        sh("umount", self.folder, check=False)
        os.rmdir(self.folder)
        return False
