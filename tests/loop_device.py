"""A loop device with ext4 over a file in memory, held to a rate by cgroup v1's blkio, for tests that need a disk
whose every byte is known. Needs root; raises Unavailable with the reason where it cannot be had."""
import glob
import os
import shutil
import stat
import subprocess
import tempfile
import time

CGROUPS = "/sys/fs/cgroup"


class Unavailable(Exception):
    pass


def sh(*argv, check=True):
    return subprocess.run(argv, check=check, capture_output=True, text=True).stdout.strip()


class LoopDevice:
    """with LoopDevice(...) as d: d.name, d.mount. `partitions`: sizes in MiB; the file system is on the first."""

    def __init__(self, size_mib, partitions=(), backing="/dev/shm", direct=True):
        self.size_mib, self.partitions, self.direct = size_mib, partitions, direct
        self.image = os.path.join(backing, f"stoker-loop-{os.getpid()}.img")
        self.name = self.mount = None
        self.nodes = None
        self.groups = []

    def __enter__(self):
        if os.geteuid() != 0:
            raise Unavailable("a loop device needs root")
        path = os.environ.get("PATH", "") + ":/sbin:/usr/sbin"
        os.environ["PATH"] = path
        for tool in ["losetup", "mkfs.ext4", "mount"] + (["addpart"] if self.partitions else []):
            if not any(os.access(os.path.join(p, tool), os.X_OK) for p in path.split(":")):
                raise Unavailable(f"{tool} is not installed")
        try:
            self._make()
        except (subprocess.CalledProcessError, FileNotFoundError) as e:
            self.__exit__()
            raise Unavailable(f"no loop device could be made: {e} {getattr(e, 'stderr', '')}") from e
        return self

    def _make(self):
        sh("truncate", "-s", f"{self.size_mib}M", self.image)
        node = sh("losetup", "-f", "--show", f"--direct-io={'on' if self.direct else 'off'}", self.image)
        self.name = os.path.basename(node)
        # told to the kernel as a partition table would: not every kernel can read one
        at = 2048
        for i, mib in enumerate(self.partitions):
            sh("addpart", node, str(i + 1), str(at), str(mib * 2048))
            at += mib * 2048
        self.node = self.partition(1) if self.partitions else node
        sh("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.node)
        mount = tempfile.mkdtemp()
        sh("mount", self.node, mount)
        self.mount = mount

    def __exit__(self, *_):
        if self.mount:
            sh("umount", self.mount, check=False)
            os.rmdir(self.mount)
        if self.name:
            # they would outlive the device's file
            for i in range(len(self.partitions)):
                sh("delpart", f"/dev/{self.name}", str(i + 1), check=False)
            sh("losetup", "-d", f"/dev/{self.name}", check=False)
        if self.nodes:
            shutil.rmtree(self.nodes)
        if os.path.exists(self.image):
            os.unlink(self.image)
        for group in self.groups:
            for _ in range(20):
                try:
                    os.rmdir(group)
                    break
                except OSError:
                    time.sleep(0.1)
        return False

    def partition(self, n):
        """The node of a partition; made where nobody makes nodes for new devices."""
        name = f"{self.name}p{n}"
        for _ in range(40):
            if os.path.exists(f"/sys/block/{self.name}/{name}/dev"):
                break
            time.sleep(0.05)
        if os.path.exists(f"/dev/{name}"):
            return f"/dev/{name}"
        with open(f"/sys/block/{self.name}/{name}/dev") as f:
            major, minor = map(int, f.read().split(":"))
        self.nodes = self.nodes or tempfile.mkdtemp()
        node = f"{self.nodes}/{name}"
        os.mknod(node, 0o600 | stat.S_IFBLK, os.makedev(major, minor))
        return node

    def number(self):
        with open(f"/sys/block/{self.name}/dev") as f:
            return f.read().strip()

    def read_ahead_kib(self, kib):
        with open(f"/sys/block/{self.name}/queue/read_ahead_kb", "w") as f:
            f.write(str(kib))

    def delivered(self):
        """Bytes that the whole device has read, by its own counter."""
        with open(f"/sys/block/{self.name}/stat") as f:
            return int(f.read().split()[2]) * 512

    def group(self, controller, **files):
        """A cgroup v1 with those settings (a__b=value writes the file a.b); None where there is no such controller."""
        if not os.path.isdir(f"{CGROUPS}/{controller}"):
            return None
        path = f"{CGROUPS}/{controller}/stoker-ledger-{os.getpid()}"
        if path not in self.groups:
            os.makedirs(path, exist_ok=True)
            self.groups.append(path)
        for key, value in files.items():
            with open(f"{path}/{key.replace('__', '.')}", "w") as f:
                f.write(f"{value}\n")
        return path

    def cold(self):
        """Writes out and evicts every file of the file system."""
        sh("sync")
        for path in glob.glob(f"{self.mount}/**/*", recursive=True):
            if os.path.isfile(path):
                fd = os.open(path, os.O_RDONLY)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)


def memory_group(device, limit):
    """A cgroup whose programs may use so much memory, version 1 or 2; gone with the device."""
    group = device.group("memory", memory__limit_in_bytes=limit)
    if group:
        return group
    for root in (CGROUPS, f"{CGROUPS}/unified"):
        try:
            with open(f"{root}/cgroup.controllers") as f:
                if "memory" not in f.read().split():
                    continue
            with open(f"{root}/cgroup.subtree_control", "w") as f:
                f.write("+memory")
            group = f"{root}/stoker-memory-{os.getpid()}"
            os.mkdir(group)
            device.groups.append(group)
            with open(f"{group}/memory.max", "w") as f:
                f.write(str(limit))
            return group
        except OSError as e:
            raise Unavailable(f"no memory control group can be made: {e}") from e
    raise Unavailable("there is no memory control group")


def join(groups):
    """For subprocess's preexec_fn: the child enters the groups."""
    def enter():
        for group in groups:
            with open(f"{group}/cgroup.procs", "w") as f:
                f.write(str(os.getpid()))
    return enter
