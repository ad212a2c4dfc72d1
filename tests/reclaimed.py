"""What the kernel takes back from the page cache by itself while a test runs: too little memory, or, on some virtual
machines, pages that were idle. cachestat(2) counts it for each file; what was evicted on request does not count."""
import ctypes
import mmap
import os
import pathlib
import threading

CACHESTAT = 451
TICK_S = 0.05


class _Range(ctypes.Structure):
    _fields_ = [("off", ctypes.c_uint64), ("len", ctypes.c_uint64)]


class _Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")]


_LIBC = ctypes.CDLL(None, use_errno=True)


def cached(path):
    """(bytes in the page cache, bytes that were in it until the kernel took them back); of whole pages. The latter is 0
    where the kernel does not tell; None where it tells nothing."""
    everything, counts = _Range(0, 0), _Counts()
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        if _LIBC.syscall(CACHESTAT, fd, ctypes.byref(everything), ctypes.byref(counts), 0) != 0:
            return None
    finally:
        os.close(fd)
    return counts.cached * mmap.PAGESIZE, counts.evicted * mmap.PAGESIZE


class Watch:
    """Watches the files below a folder, which may come later. Afterwards `taken` says how many bytes the kernel took back,
    as often as it did. `during`: a function; only what is taken while it is true counts in `taken_then`."""

    def __init__(self, folder, during=lambda: True):
        self.folder, self.during = pathlib.Path(folder), during
        self.taken = self.taken_then = 0
        self.known, self.quit = {}, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def look(self):
        then = self.during()
        for path in list(self.files()):
            seen = cached(path)
            more = seen[1] - self.known.get(path, 0) if seen else 0
            self.known[path] = seen[1] if seen else 0
            self.taken += max(0, more)
            self.taken_then += max(0, more) if then else 0

    def files(self):
        try:
            yield from (p for p in self.folder.rglob("*") if p.is_file())
        except OSError:  # removed meanwhile
            return

    def run(self):
        while not self.quit.wait(TICK_S):
            self.look()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.quit.set()
        self.thread.join()
        self.look()
        return False
