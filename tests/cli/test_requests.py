"""The system calls of a run: with reader.access framework the opens, offsets and sizes of NumPy; with
native one open and the fewest reads."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, STOKER, skip, stoker, tiny  # noqa: E402

if not shutil.which("strace"):
    skip("strace is not installed")
if SANITIZED:
    skip("strace and sanitizers do not go together")


def calls(trace):
    """Whole calls, also those that another thread's call was printed within."""
    begun = {}
    for line in trace.read_text().splitlines():
        thread, call = line.split(None, 1)
        if call.endswith("<unfinished ...>"):
            begun[thread] = call[:-len("<unfinished ...>")]
            continue
        m = re.match(r"<\.\.\. \w+ resumed>(.*)", call)
        yield begun.pop(thread, "") + m.group(1) if m else call


def requests(trace):
    """Per data file: the list of (offset, asked, returned), and the number of opens."""
    fds, files, opens = {}, {}, {}
    for call in calls(trace):
        m = re.match(r'openat\(AT_FDCWD, "([^"]*/train/[^"]*)", O_RDONLY[^)]*\)\s*= (\d+)', call)
        if m:
            fds[m.group(2)] = os.path.basename(m.group(1))
            opens[fds[m.group(2)]] = opens.get(fds[m.group(2)], 0) + 1
            continue
        m = re.match(r"pread64\((\d+), .*, (\d+), (\d+)\)\s*= (\d+)", call)
        if m and m.group(1) in fds:
            files.setdefault(fds[m.group(1)], []).append((int(m.group(3)), int(m.group(2)), int(m.group(4))))
        m = re.match(r"close\((\d+)\)", call)
        if m:
            fds.pop(m.group(1), None)
    return files, opens


def traced(tmp, fmt, access, length):
    data, trace = tmp / f"{fmt}{length}", tmp / "trace"
    keys = dict(fmt=fmt, files=2, dataset__record_length_bytes=length, reader__batch_size=1,
                reader__read_threads=1, storage__page_cache_files=0,
                dataset__verify_samples=0)  # these open files, too
    if not data.exists():
        stoker("run", *tiny(data, tmp / "out", workflow__train="false", **keys))
    subprocess.run(["strace", "-f", "-s", "0", "-e", "trace=openat,pread64,close", "-o", trace, STOKER, "run",
                    *map(str, tiny(data, tmp / "out", workflow__generate_data="false", reader__access=access,
                                   **keys))], check=True, capture_output=True, timeout=60)
    files, opens = requests(trace)
    size = os.path.getsize(data / f"train/img_0_of_2.{fmt}")
    return files[f"img_0_of_2.{fmt}"], opens[f"img_0_of_2.{fmt}"], size


def npz_framework(size, payload):
    """What np.load(f)['x'] asks for with a buffer of 4096 (NumPy 1.24, Python 3.11)."""
    directory = size - 22 - 102  # two central entries of 46 + 5 name bytes
    return [(0, 4096), (size - 22, 23), (size, None), (size - 42, 4096), (directory, 4096), (0, 4096)]


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        length = 4 << 20
        # npy: 4096 twice at 0 with 128 between, then one read of the whole pages left, then the tail
        got, opens, size = traced(tmp, "npy", "framework", length)
        print("npy framework", opens, got)
        assert opens == 1
        assert [g[:2] for g in got[:3]] == [(0, 4096), (0, 128), (0, 4096)], got
        rest = size - 4096
        assert got[3][:2] == (4096, rest // 4096 * 4096), got
        assert sum(g[2] for g in got[3:]) == rest
        got, opens, size = traced(tmp, "npy", "native", length)
        print("npy native", opens, got)
        piece = 2 << 20
        assert opens == 1 and [(g[0], g[2]) for g in got] == [
            (at, min(piece, size - at)) for at in range(0, size, piece)], got
        got, opens, size = traced(tmp, "npz", "framework", length)
        print("npz framework", opens, got[:14], "...")
        assert opens == 1
        expected = npz_framework(size, length)
        for have, want in zip(got, expected):
            assert have[0] == want[0] and (want[1] is None or have[1] == want[1]), (have, want, got[:12])
        data = [g for g in got if g[1] > 4096]
        assert data[0][1] == 253952 and data[1][1] == 258048, data[:3]
        assert all(g[1] == 258048 for g in data[1:-1]), data
        got, opens, size = traced(tmp, "npz", "native", length)
        print("npz native", opens, got)
        assert opens == 1 and len(got) == 3 and got[-1][0] == 2 * piece, got


if __name__ == "__main__":
    main()
