"""Figures, not a test: what recording costs.

    python3 tests/bench/record.py build/stoker [ROUNDS]

Each round runs the same program with and without the recorder, in turns that change places; of the ratios and
differences the median is printed, with the least and the greatest. First a loop of reads of 4 KiB from a file in memory, whose processor time the
program itself measures. Then, where torch is installed, a DataLoader of .npz files with two workers and steps of 25 ms:
from the first batch to the last. Last 10^7 reads: bytes of the recording, and the time to read it back.
"""
import itertools
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

READS = 400000
number = itertools.count()
TRAIN = """
import sys, time
import numpy, torch
class Files(torch.utils.data.Dataset):
    def __len__(self): return 320
    def __getitem__(self, i): return numpy.load(f'{sys.argv[1]}/{i % 64}.npz')['x']
begin = None
for batch in torch.utils.data.DataLoader(Files(), batch_size=4, shuffle=True, num_workers=2):
    begin = begin or time.monotonic()
    time.sleep(0.025)
print(time.monotonic() - begin)
"""


def told(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def turns(stoker, command, rounds, tmp):
    """[(seconds without, seconds with the recorder)] that the program prints."""
    found = []
    for n in range(rounds):
        one = {}
        for recorded in (n % 2 == 0, n % 2 == 1):
            before = [stoker, "record", "-o", f"{tmp}/r{next(number)}", "--"] if recorded else []
            one[recorded] = float(subprocess.run([*before, *command], check=True, capture_output=True, text=True).stdout)
        found.append((one[False], one[True]))
    return found


def main():
    stoker = str(pathlib.Path(sys.argv[1]).resolve())
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    job = pathlib.Path(stoker).parent / "tests/recorded"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        data = pathlib.Path(tmp, "data")
        data.write_bytes(bytes(1 << 20))
        found = turns(stoker, [job, "timed", data, str(READS)], rounds, tmp)
        print(f"pread of 4 KiB from tmpfs: {told([a / READS * 1e9 for a, _ in found], '.0f')} ns, recorded "
              f"{told([(b - a) / READS * 1e9 for a, b in found], '+.0f')} ns", flush=True)
        try:
            import numpy
            import torch  # noqa: F401
        except ImportError:
            print("torch is not installed")
        else:
            for i in range(64):
                numpy.savez(f"{tmp}/{i}.npz", x=numpy.zeros((100, 100), dtype="u1"))
            found = turns(stoker, [sys.executable, "-c", TRAIN, tmp], rounds, tmp)
            print(f"torch, 2 workers, steps of 25 ms: {told([a for a, _ in found], '.3f')} s, recorded x "
                  f"{told([b / a for a, b in found], '.3f')}", flush=True)
        subprocess.run([stoker, "record", "-o", f"{tmp}/many", "--", job, "timed", data, str(10 ** 7)], check=True, capture_output=True)
        size = sum(p.stat().st_blocks * 512 for p in pathlib.Path(tmp, "many").iterdir())
        begin = time.monotonic()
        subprocess.run([job.parent / "job_events", f"{tmp}/many"], check=True, stdout=subprocess.DEVNULL)
        print(f"10^7 reads: {size / 1e6:.1f} MB, read back and printed in {time.monotonic() - begin:.1f} s")


if __name__ == "__main__":
    main()
