"""Figures, not a test: what a trace costs a run, run.trace=both against none.

    python3 tests/bench/trace.py build/stoker [ROUNDS]

Throughput and processor time are those of training: the files of the trace are written after it, and what that
takes is given by itself. `measuring.py` says what a span costs while it is kept.
"""
import pathlib
import resource
import statistics
import sys
import tempfile

from pairs import Pairs

EVENTS = 1000000
CASES = {
    "npy, native, 4 KiB": dict(fmt="npy", files=500, reader__access="native", reader__batch_size=50),
    "npz, 115 KB": dict(fmt="npz", files=500, reader__batch_size=50, dataset__record_length_bytes=114660),
}


def writing(pairs, keys):
    """Processor ns a span of writing the files: from a run whose trace is long to one whose trace is short."""
    from util import load
    used, kept = [], []
    for events in (16, EVENTS):
        walls = []
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            pairs.run(keys, run__trace="both", run__trace_events=events)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            walls.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        used.append(statistics.median(walls))
        kept.append(load(pairs.tmp / "out")["trace"]["spans"])
    size = sum(p.stat().st_size for p in (pairs.tmp / "out").glob("trace*"))
    return kept[1], 1e9 * (used[1] - used[0]) / (kept[1] - kept[0]), size


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        pairs = Pairs(pathlib.Path(name), sys.argv)
        for case, keys in CASES.items():
            pairs.show(case, keys, dict(run__trace="none"), dict(run__trace="both", run__trace_events=EVENTS))
            spans, ns, size = writing(pairs, dict(keys, train__epochs=60, train__computation_time=0,
                                                  workflow__generate_data="false"))
            print(f"    both files of {spans:,} spans: {size / 1e6:,.0f} MB, {ns:,.0f} ns of processor time a span, of "
                  f"which touching its memory is part", flush=True)


main()
