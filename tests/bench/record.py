"""Figures, not a test: what recording costs.

    python3 tests/bench/record.py build/stoker [ROUNDS] [calls] [steps] [many]

Each round runs the same program with and without the recorder, in turns that change places; of the pairs' differences and
ratios the median is printed, with the interval that holds the true median with 95 % (of the ranks of a binomial distribution).

calls  A loop of reads of 4 KiB from a file in memory, whose processor time the program itself measures.
steps  Where torch is installed: a DataLoader of .npz files with two workers and 80 steps of 25 ms. Seconds from the first batch to
       the last, and the processor time of the program in these and of its workers from their fork to their end. The time of a job that waits for its
       steps hardly depends on its processor time, which others on the machine disturb less.
many   10^7 reads: bytes of the recording, and the time to read it back.
"""
import itertools
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

READS = 400000
number = itertools.count()
TRAIN = """
import resource, sys, time
import numpy, torch
class Files(torch.utils.data.Dataset):
    def __len__(self): return 324
    def __getitem__(self, i): return numpy.load(f'{sys.argv[1]}/{i % 64}.npz')['x']
def used(who):
    return sum(resource.getrusage(who)[:2])
begin = None
for batch in torch.utils.data.DataLoader(Files(), batch_size=4, shuffle=True, num_workers=2):
    if begin is None: begin, before = time.monotonic(), used(resource.RUSAGE_SELF)
    time.sleep(0.025)
print(time.monotonic() - begin, used(resource.RUSAGE_SELF) - before + used(resource.RUSAGE_CHILDREN))
"""


def told(values, form):
    """The median, and the interval of it: between which ranks it lies in 95 % of all samples of this size."""
    values, n, below, k = sorted(values), len(values), 0.0, 0
    while k < n // 2 and (below + math.comb(n, k) / 2 ** n) <= 0.025:
        below += math.comb(n, k) / 2 ** n
        k += 1
    first = max(k - 1, 0)
    return f"{statistics.median(values):{form}} ({values[first]:{form}} to {values[n - 1 - first]:{form}})"


def turns(stoker, command, rounds, tmp):
    """[(figures without, figures with the recorder)] that the program prints."""
    found = []
    for n in range(rounds):
        one = {}
        for recorded in (n % 2 == 0, n % 2 == 1):
            before = [stoker, "record", "-o", f"{tmp}/r{next(number)}", "--"] if recorded else []
            out = subprocess.run([*before, *command], check=True, capture_output=True, text=True).stdout
            one[recorded] = [float(word) for word in out.split()]
        found.append((one[False], one[True]))
    return found


def calls(stoker, job, rounds, tmp):
    found = turns(stoker, [job, "timed", f"{tmp}/data", str(READS)], rounds, tmp)
    print(f"pread of 4 KiB from tmpfs: {told([a[0] / READS * 1e9 for a, _ in found], '.0f')} ns, recorded "
          f"{told([(b[0] - a[0]) / READS * 1e9 for a, b in found], '+.0f')} ns", flush=True)


def steps(stoker, job, rounds, tmp):
    try:
        import numpy
        import torch  # noqa: F401
    except ImportError:
        print("torch is not installed")
        return
    for i in range(64):
        numpy.savez(f"{tmp}/{i}.npz", x=numpy.zeros((100, 100), dtype="u1"))
    found = turns(stoker, [sys.executable, "-c", TRAIN, tmp], rounds, tmp)
    for k, what in enumerate(("80 steps of 25 ms with 2 workers", "processor time of these, and of the workers from their fork")):
        print(f"{what}: {told([a[k] for a, _ in found], '.3f')} s, recorded x {told([b[k] / a[k] for a, b in found], '.4f')}, "
              f"{told([1e3 * (b[k] - a[k]) for a, b in found], '+.1f')} ms", flush=True)
    steps_s = 80 * 0.025
    print(f"processor time more, by the time of the steps: {told([(b[1] - a[1]) / steps_s * 100 for a, b in found], '+.2f')} %")


def many(stoker, job, rounds, tmp):
    subprocess.run([stoker, "record", "-o", f"{tmp}/many", "--", job, "timed", f"{tmp}/data", str(10 ** 7)], check=True, capture_output=True)
    size = sum(p.stat().st_blocks * 512 for p in pathlib.Path(tmp, "many").iterdir())
    begin = time.monotonic()
    subprocess.run([job.parent / "job_events", f"{tmp}/many"], check=True, stdout=subprocess.DEVNULL)
    print(f"10^7 reads: {size / 1e6:.1f} MB, read back and printed in {time.monotonic() - begin:.1f} s")


def main():
    stoker = str(pathlib.Path(sys.argv[1]).resolve())
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    job = pathlib.Path(stoker).parent / "tests/recorded"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        pathlib.Path(tmp, "data").write_bytes(bytes(1 << 20))
        for part in (calls, steps, many):
            if len(sys.argv) < 4 or part.__name__ in sys.argv[3:]:
                part(stoker, job, rounds, tmp)


if __name__ == "__main__":
    main()
