"""Figures, not a test: what measuring costs, and what keeping a trace costs besides.

    python3 tests/bench/measuring.py build/stoker [ROUNDS]

The parts take turns every few milliseconds in one process (`tests/tools/measure_tool.c`), so that what else
the machine does falls on all alike; of each figure the median is printed, and the interval that holds the true
median with 95 % certainty. First reads alone, in processor time of the thread that reads. Then epochs of a
loader in which each sample is an open, a read and a close: at the pace of its workers, and asked for at
100,000 samples a second, where what measuring takes can only show as processor time. Several processes, as
where a process finds its memory matters, too. Last the whole program: run.measure=all with all that is on
by default against none.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from pairs import Pairs, told

MIB = 1 << 20
PACE = 100000  # reads a second
PROCESSES = 9
READS = {  # bytes, reads a turn, threads
    "4 KiB, one thread": (4096, 500, 1),
    "4 KiB, two threads": (4096, 500, 2),
    "32 KiB, one thread": (32768, 150, 1),
}
BATCH, FILES, REQUESTS = 100, dict(fmt="indexed_binary", files=4, dataset__num_samples_per_file=250,
                                   reader__access="native"), 3
EPOCHS = {  # bytes, workers, ns between batches
    "32 KiB, one worker": (32768, 1, 0),
    "4 KiB, one worker": (4096, 1, 0),
    f"4 KiB, two workers, {PACE:,} samples/s": (4096, 2, BATCH * 10 ** 9 // PACE),
}


def rows(tool, *args):
    done = subprocess.run([tool, *map(str, args)], check=True, text=True, capture_output=True)
    return [[float(x) for x in line.split()] for line in done.stdout.splitlines()]


def reads(tool, tmp, rounds):
    path = tmp / "bytes"
    path.write_bytes(os.urandom(64 * MIB))
    print("reads: processor time of one, what counting and timing it adds, and then its span in a trace")
    for name, (size, turn, threads) in READS.items():
        found = rows(tool, "reads", path, size, turn, threads, 40 * rounds)
        none, full, traced = list(zip(*found))[:3]
        counting, span = [b - a for a, b in zip(none, full)], [b - a for a, b in zip(full, traced)]
        at_pace = statistics.median(counting) * PACE / 1e7
        print(f"  {name}: {statistics.median(none):,.0f} ns, {told(counting, '+.1f')} ns ({at_pace:.2f} % of {PACE:,} "
              f"reads/s of one thread), {told(span, '+.1f')} ns", flush=True)
    path.unlink()


def epochs(pairs, tool, rounds):
    print("epochs: throughput, and processor time a request, by counting and timing; then by a trace besides")
    for name, (size, workers, step_ns) in EPOCHS.items():
        keys = dict(FILES, dataset__record_length_bytes=size, reader__read_threads=workers, reader__batch_size=BATCH,
                    run__trace_events=200000)
        pairs.generate(keys, run__measure="none")
        middles = []
        for _ in range(PROCESSES):
            found = rows(tool, "epochs", rounds, step_ns, *pairs.overrides(keys))
            middles.append([statistics.median(ratios) for ratios in zip(*[
                (1e9 / r[4], 100 * (r[3] / r[4] - 1), (r[1] - r[0]) / REQUESTS,
                 100 * (r[4] / r[5] - 1), (r[2] - r[1]) / REQUESTS) for r in found])])
        rate, wall, cpu, trace_wall, trace_cpu = zip(*middles)
        print(f"  {name} ({statistics.median(rate):,.0f} samples/s, {REQUESTS} requests each): "
              f"{told(wall, '+.2f')} %, {told(cpu, '+.0f')} ns; {told(trace_wall, '+.2f')} %, "
              f"{told(trace_cpu, '+.0f')} ns", flush=True)


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        tmp = pathlib.Path(name)
        pairs = Pairs(tmp, sys.argv)
        tool = pathlib.Path(pairs.stoker).parent / "tests" / "measure_tool"
        reads(tool, tmp, pairs.rounds)
        epochs(pairs, tool, pairs.rounds)
        sample_ns = rows(tool, "samples", 100)[0][0]
        print(f"a sample of the machine: {sample_ns / 1e3:.0f} us, {sample_ns / 0.5 / 1e7:.3f} % of a processor at "
              f"run.sample_interval=0.5")
        print("the whole program")
        pairs.show("  32 KiB, one worker", dict(FILES, reader__batch_size=BATCH, dataset__record_length_bytes=32768,
                                                train__epochs=60), dict(run__measure="none"), {})


main()
